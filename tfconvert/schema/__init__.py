"""What things are: dialects, the formats of TensorFlow and LiteRT, and diagnostics."""
