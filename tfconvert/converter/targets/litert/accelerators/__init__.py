"""Forms of operators that accelerators take, for those that they refuse or compute wrongly."""
