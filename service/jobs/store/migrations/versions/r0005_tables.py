"""The tables of the job store."""

import sqlalchemy as sa
from alembic import op

revision = "r0005"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None
_TABLES = ("job_secrets", "leadership", "attachments", "catalog", "tokens", "events", "jobs")


def upgrade() -> None:
    # reads better long: one table after the other
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(36), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("desired_state", sa.String(16), nullable=False),
        sa.Column("plan", sa.LargeBinary, nullable=False),
        sa.Column("sql", sa.Text, nullable=False),
        sa.Column("warnings", sa.JSON, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("error", sa.JSON, nullable=True),
        sa.Column("crashes", sa.Integer, nullable=False),
        sa.Column("restarts", sa.Integer, nullable=False),
        sa.Column("events_offset", sa.BigInteger, nullable=False),
        sa.Column("remove_output", sa.Boolean, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("updated_at_ms", sa.BigInteger, nullable=False),
        sa.Column("idempotency_key", sa.String(255), nullable=True, unique=True),
        sa.Column("request_digest", sa.String(64), nullable=False),
        sa.Column("shared_table", sa.Text, nullable=True),
    )
    op.create_table(
        "events",
        sa.Column(
            "sequence",
            sa.BigInteger().with_variant(sa.Integer, "sqlite"),
            primary_key=True,
            autoincrement=True,
        ),
        sa.Column("job_id", sa.String(36), sa.ForeignKey("jobs.id"), nullable=False, index=True),
        sa.Column("at_ms", sa.BigInteger, nullable=False),
        sa.Column("origin", sa.String(16), nullable=True),
        sa.Column("target", sa.String(16), nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "tokens",
        sa.Column("id", sa.String(16), primary_key=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("digest", sa.LargeBinary, nullable=False),
        sa.Column("created_by", sa.Text, nullable=False),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
        sa.Column("expires_at_ms", sa.BigInteger, nullable=False),
        sa.Column("revoked_at_ms", sa.BigInteger, nullable=True),
        sa.Column("last_used_at_ms", sa.BigInteger, nullable=True),
    )
    op.create_table(
        "catalog",
        sa.Column("name", sa.String(100), primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("sql", sa.Text, nullable=False),
        sa.Column("job_id", sa.String(36), nullable=True),
        sa.Column("partitions", sa.Integer, nullable=True),
        sa.Column("created_at_ms", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "attachments",
        sa.Column("job_id", sa.String(36), primary_key=True),
        sa.Column("table_job_id", sa.String(36), primary_key=True),
    )
    leadership = op.create_table(
        "leadership",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("term", sa.BigInteger, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("is_vacant", sa.Boolean, nullable=False),
        sa.Column("data_dir_id", sa.String(36), nullable=True),
    )
    vacant = {"number": 1, "term": 0, "url": "", "since_ms": 0, "is_vacant": True}
    op.bulk_insert(leadership, [vacant])
    op.create_table(
        "job_secrets",
        sa.Column("job_id", sa.String(36), primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )


def downgrade() -> None:
    for table in _TABLES:
        op.drop_table(table)
