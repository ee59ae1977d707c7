"""Migrations: how the tables have changed from version to version, run by alembic."""
