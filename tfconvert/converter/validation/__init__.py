"""Checks that results are right: of passes, and of converted models."""
