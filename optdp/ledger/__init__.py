"""Releases over time: a file that records them, says what is spent, and refuses what would exceed a total."""
