"""Where files of the repository are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TARGET = ROOT / "target"
