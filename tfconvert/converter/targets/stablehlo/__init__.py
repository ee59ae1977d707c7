"""The target StableHLO: its pipeline, its passes, and how ops become StableHLO."""
