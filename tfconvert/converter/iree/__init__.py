"""From StableHLO to what IREE compiles."""
