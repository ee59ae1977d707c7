"""Quantization: rules of the operators, parameters from ranges, weights, calibration."""
