"""IR to foreign files."""
