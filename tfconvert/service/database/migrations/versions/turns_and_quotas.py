"""The turns of queued jobs, by which owners alternate, and further quotas of tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "turns_and_quotas"
down_revision = "jobs_servers_tokens"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Adds the columns; jobs that are queued keep their order."""
    op.add_column(
        "jobs",
        sa.Column(
            "turn",
            sa.BigInteger,
            nullable=False,
            server_default=sa.text("0"),
            comment="The order of queued jobs; those of one owner have different turns.",
        ),
    )
    op.add_column("tokens", sa.Column("max_running", sa.Integer))
    op.add_column("tokens", sa.Column("max_bytes", sa.BigInteger))
    op.drop_index("jobs_by_state", "jobs")
    op.create_index("jobs_by_state", "jobs", ["state", "turn", "created", "id"])
    op.drop_index("jobs_by_owner_and_state", "jobs")
    op.create_index("jobs_by_owner_and_state", "jobs", ["owner", "state", "turn"])
    op.create_index("jobs_by_owner_and_size", "jobs", ["owner", "is_cached", "size_in"])
