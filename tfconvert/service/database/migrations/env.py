"""Alembic's entry: runs the migrations on the connection that the server passes."""

from __future__ import annotations

from alembic import context

from tfconvert.service.database.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
context.run_migrations()
