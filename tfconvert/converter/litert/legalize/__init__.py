"""TensorFlow ops to LiteRT's: rows and functions by topic."""
