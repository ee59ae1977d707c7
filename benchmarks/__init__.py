"""The model zoo, and benchmarks on it: speed, memory, and results compared with the official converter's."""
