"""The pipeline: stages, the passes by name, and what watches them."""
