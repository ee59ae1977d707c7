"""The passes of the IREE target."""
