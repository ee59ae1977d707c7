"""Forms of operators that accelerators take as well as the CPU, which runs them at least as fast."""
