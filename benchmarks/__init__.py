"""The model zoo, and what is measured on it: speed, memory, and results beside the official converter's."""
