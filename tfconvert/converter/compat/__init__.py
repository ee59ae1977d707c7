"""The surface of TensorFlow's own converter class over `convert`: scripts change one import."""
