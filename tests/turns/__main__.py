"""`python -m turns`: measures, and names the cases that hold the event loop for longer than the
bar.
"""

from turns.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
