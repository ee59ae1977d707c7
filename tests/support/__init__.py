"""What tests of every kind use."""
