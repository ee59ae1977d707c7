"""TensorFlow's protobuf messages and the ops that it registers."""
