"""StableHLO artifacts (VHLO in MLIR bytecode), read without MLIR."""
