"""The report of a conversion as text, data and page."""
