"""Reference semantics of TensorFlow's ops in numpy."""
