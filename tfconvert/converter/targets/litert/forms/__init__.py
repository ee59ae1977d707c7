"""Forms of operators: those that accelerators take, and those that are faster on a processor."""
