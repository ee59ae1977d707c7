"""The target IREE: from StableHLO to the input of IREE's compiler."""
