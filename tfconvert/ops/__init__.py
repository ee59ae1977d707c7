"""TensorFlow's ops: shapes, values, kernels and decompositions."""
