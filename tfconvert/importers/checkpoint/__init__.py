"""TensorFlow's checkpoints: the files, and the formats that they consist of."""
