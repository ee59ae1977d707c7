"""Whole models, converted and run in LiteRT, against TensorFlow."""
