"""Static tables: their contents, as the model or its files have them."""
