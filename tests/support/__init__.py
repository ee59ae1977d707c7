"""Support for all tests."""
