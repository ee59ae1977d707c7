"""From StableHLO to `tf`: what each op of JAX's and PyTorch/XLA's programs is among TensorFlow's ops."""
