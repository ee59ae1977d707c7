"""The settings of a conversion."""
