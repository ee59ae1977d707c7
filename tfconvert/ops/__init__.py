"""What TensorFlow's ops mean: shapes, values and kernels."""
