"""Tests that need IREE's compiler and runtime."""
