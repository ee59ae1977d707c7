"""The migrations, each of which names the one before it."""
