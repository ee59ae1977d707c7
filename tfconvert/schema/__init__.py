"""Definitions: dialects, the formats of TensorFlow and LiteRT, and diagnostics."""
