"""`python -m turns`: measures, and says what holds the event loop for longer than the bar."""

from turns.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
