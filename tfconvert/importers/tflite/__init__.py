"""The .tflite reader: a model file as a module of `tfl` ops, weights left where they are."""
