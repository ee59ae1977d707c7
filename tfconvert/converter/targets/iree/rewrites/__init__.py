"""Rewrites of ops that IREE does not accept in their StableHLO form."""
