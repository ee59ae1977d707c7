"""The first tables: jobs, servers, tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "jobs_servers_tokens"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Creates the tables."""
    op.create_table(
        "installation",
        sa.Column("id", sa.String(32), primary_key=True),
        comment="One row: what a data directory and a database that belong together have in common.",
    )
    _create_servers()
    _create_jobs()
    _create_tokens()


def _create_servers() -> None:
    op.create_table(
        "servers",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("host", sa.String(64), nullable=False, comment="Equal for servers that can see each other's locks."),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("beat", sa.BigInteger, nullable=False, comment="Grows while the server lives."),
        sa.Column("started", sa.Double, nullable=False),
    )


def _create_jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("model_name", sa.Text, nullable=False),
        sa.Column("model_sha256", sa.String(64), nullable=False),
        sa.Column("calibration_sha256", sa.String(64), nullable=False),
        sa.Column("place", sa.Text, nullable=False),
        sa.Column("size_in", sa.BigInteger, nullable=False),
        sa.Column("idempotency_key", sa.Text, comment="NULL for none: NULLs are not equal to each other."),
        sa.Column("cache_key", sa.String(64), nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("started", sa.Double),
        sa.Column("finished", sa.Double),
        sa.Column("server", sa.String(32), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column(
            "forgiven", sa.Integer, nullable=False, comment="Attempts that don't count against the limit of attempts."
        ),
        sa.Column("stage", sa.String(64), nullable=False),
        sa.Column("problem", sa.JSON),
        sa.Column("summary", sa.JSON, nullable=False),
        sa.Column("result_attempt", sa.Integer, nullable=False),
        sa.Column("is_cached", sa.Boolean, nullable=False),
        sa.Column("cancel_requested", sa.Boolean, nullable=False),
        sa.Column("seconds", sa.Double, nullable=False),
        sa.Column("peak", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("owner", "idempotency_key", name="jobs_by_idempotency_key"),
    )
    op.create_index("jobs_by_state", "jobs", ["state", "created", "id"])
    op.create_index("jobs_by_owner", "jobs", ["owner", "created", "id"])
    op.create_index("jobs_by_owner_and_state", "jobs", ["owner", "state"])
    op.create_index("jobs_by_age", "jobs", ["created", "id"])
    op.create_index("jobs_by_cache_key", "jobs", ["cache_key", "state"])
    op.create_index("jobs_by_model", "jobs", ["model_sha256"])
    op.create_index("jobs_by_calibration", "jobs", ["calibration_sha256"])
    is_running = sa.text("state = 'running'")
    op.create_index(
        "jobs_one_of_equals_runs",
        "jobs",
        ["cache_key"],
        unique=True,
        sqlite_where=is_running,
        postgresql_where=is_running,
    )


def _create_tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("name", sa.String(100), nullable=False, unique=True),
        sa.Column(
            "hash", sa.String(64), nullable=False, unique=True, comment="SHA-256: the token itself is kept nowhere."
        ),
        sa.Column("role", sa.String(16), nullable=False),
        sa.Column("max_active", sa.Integer, comment="NULL for what the server is set to, like the next."),
        sa.Column("per_minute", sa.Integer),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("revoked", sa.Double),
    )
