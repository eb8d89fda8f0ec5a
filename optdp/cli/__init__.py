"""The command line: `main.py`, and the commands by what they work on. No mathematics."""
