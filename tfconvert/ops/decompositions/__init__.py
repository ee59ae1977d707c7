"""Formulas of ops, one file a family; `registry.py` has all of them."""
