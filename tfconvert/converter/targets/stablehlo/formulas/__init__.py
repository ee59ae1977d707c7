"""Sizes of StableHLO's values as formulas of the sizes of the arguments, and functions that compute them."""
