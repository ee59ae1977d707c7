"""Flex ops: TensorFlow's own kernels, called by LiteRT where the app links its Flex delegate (Select TF ops)."""
