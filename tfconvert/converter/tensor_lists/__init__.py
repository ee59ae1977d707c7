"""Converts lists of tensors to tensors: the values that are lists, their elements, and the lowering of each op."""
