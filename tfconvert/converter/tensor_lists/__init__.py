"""Lists of tensors become tensors: which values are lists, what their elements are, and what each op becomes."""
