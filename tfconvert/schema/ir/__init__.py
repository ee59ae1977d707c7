"""The IR: SSA with MLIR's terms and syntax; independent of all dialects but `builtin`."""
