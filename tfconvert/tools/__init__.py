"""Tools for .tflite files: comparison with a model, with its layers or with another file, and measurement."""
