"""TensorFlow ops to LiteRT's: entries and functions by topic."""
