"""The database: its tables, opening it, and migrating older ones."""
