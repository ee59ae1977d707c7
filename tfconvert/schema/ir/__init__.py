"""The IR: SSA in MLIR's words and with MLIR's text; knows no dialect but `builtin`."""
