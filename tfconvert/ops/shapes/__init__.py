"""Shape and value functions of ops, by topic."""
