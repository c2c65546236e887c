"""Jobs and their events.

Revision ID: r0001
"""

import sqlalchemy as sa
from alembic import op

revision = "r0001"
down_revision: str | None = None
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
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


def downgrade() -> None:
    op.drop_table("events")
    op.drop_table("jobs")
