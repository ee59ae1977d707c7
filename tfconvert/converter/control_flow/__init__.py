"""Functional control flow: constructs, calls, and what branches and loops have too much of."""
