"""Our quantization beside the official converter's, model by model."""
