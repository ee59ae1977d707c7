"""The dialects that models are held in, their types and attributes, and their text."""
