"""The tables, for both SQLite and PostgreSQL."""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Double,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

METADATA = MetaData()

INSTALLATION = Table(
    "installation",
    METADATA,
    Column("id", String(32), primary_key=True),
    comment="One row: what a data directory and a database that belong together have in common.",
)

SERVERS = Table(
    "servers",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("host", String(64), nullable=False, comment="Equal for servers that can see each other's locks."),
    Column("pid", Integer, nullable=False),
    Column("beat", BigInteger, nullable=False, comment="Grows while the server lives."),
    Column("started", Double, nullable=False),
)

JOBS = Table(
    "jobs",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("owner", String(32), nullable=False),
    Column("state", String(16), nullable=False),
    Column("settings", JSON, nullable=False),
    Column("model_name", Text, nullable=False),
    Column("model_sha256", String(64), nullable=False),
    Column("calibration_sha256", String(64), nullable=False),
    Column("place", Text, nullable=False),
    Column("size_in", BigInteger, nullable=False),
    Column("idempotency_key", Text, comment="NULL for none: NULLs are not equal to each other."),
    Column("cache_key", String(64), nullable=False),
    Column("created", Double, nullable=False),
    Column("started", Double),
    Column("finished", Double),
    Column("server", String(32), nullable=False),
    Column("attempt", Integer, nullable=False),
    Column(
        "turn",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="The order of queued jobs; those of one owner have different turns.",
    ),
    Column("forgiven", Integer, nullable=False, comment="Attempts that don't count against the limit of attempts."),
    Column("stage", String(64), nullable=False),
    Column("problem", JSON(none_as_null=True)),
    Column("summary", JSON, nullable=False),
    Column("result_attempt", Integer, nullable=False),
    Column("is_cached", Boolean, nullable=False),
    Column("cancel_requested", Boolean, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("peak", BigInteger, nullable=False),
    UniqueConstraint("owner", "idempotency_key", name="jobs_by_idempotency_key"),
    Index("jobs_by_state", "state", "turn", "created", "id"),
    Index("jobs_by_owner", "owner", "created", "id"),
    Index("jobs_by_owner_and_state", "owner", "state", "turn"),
    Index("jobs_by_owner_and_size", "owner", "is_cached", "size_in"),
    Index("jobs_by_age", "created", "id"),
    Index("jobs_by_cache_key", "cache_key", "state"),
    Index("jobs_by_model", "model_sha256"),
    Index("jobs_by_calibration", "calibration_sha256"),
)

# The database ensures that only one of equal jobs runs at a time, for any number of servers.
ONE_RUNS = Index(
    "jobs_one_of_equals_runs",
    JOBS.c.cache_key,
    unique=True,
    sqlite_where=text("state = 'running'"),
    postgresql_where=text("state = 'running'"),
)

TOKENS = Table(
    "tokens",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("hash", String(64), nullable=False, unique=True, comment="SHA-256: the token itself is kept nowhere."),
    Column("role", String(16), nullable=False),
    Column("max_active", Integer, comment="NULL for what the server is set to, like the next."),
    Column("per_minute", Integer),
    Column("max_running", Integer),
    Column("max_bytes", BigInteger),
    Column("created", Double, nullable=False),
    Column("revoked", Double),
)
