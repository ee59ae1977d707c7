"""Cuts of a model at tensors that the user names."""
