"""Tools for finished .tflite files: comparison with a model, layer by layer, and with each other; measurement."""
