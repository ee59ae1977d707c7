"""The rewrites of ops that IREE does not take as they are."""
