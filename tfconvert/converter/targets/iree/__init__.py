"""The target IREE: from StableHLO to what its compiler takes."""
