"""`python -m soak`: plays sessions and judges them, or judges a history that was written before."""

from .cli import main

if __name__ == "__main__":
    raise SystemExit(main())
