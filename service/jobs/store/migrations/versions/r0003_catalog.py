"""The catalog: tables and views for later scripts, and which jobs read a shared one.

Revision ID: r0003
"""

import sqlalchemy as sa
from alembic import op

revision = "r0003"
down_revision: str | None = "r0002"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
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
    op.add_column("jobs", sa.Column("shared_table", sa.Text, nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "shared_table")
    op.drop_table("attachments")
    op.drop_table("catalog")
