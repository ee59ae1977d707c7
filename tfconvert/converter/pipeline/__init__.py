"""The pipeline: stages, the passes by name, and instruments."""
