"""The database: its tables, how it is opened, and how older ones are brought up to date."""
