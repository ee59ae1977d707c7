"""Passes for the target StableHLO only."""
