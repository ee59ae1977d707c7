"""What IREE makes of our programs."""
