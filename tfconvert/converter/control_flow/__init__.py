"""Functional control flow: constructs, calls, and simplifications of branches and loops."""
