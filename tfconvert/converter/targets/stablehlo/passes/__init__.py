"""Passes of the target StableHLO alone."""
