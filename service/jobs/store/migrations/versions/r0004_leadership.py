"""Which of several control planes leads.

Revision ID: r0004
"""

import sqlalchemy as sa
from alembic import op

revision = "r0004"
down_revision: str | None = "r0003"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    table = op.create_table(
        "leadership",
        sa.Column("number", sa.Integer, primary_key=True),
        sa.Column("term", sa.BigInteger, nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("since_ms", sa.BigInteger, nullable=False),
        sa.Column("is_vacant", sa.Boolean, nullable=False),
        sa.Column("data_dir_id", sa.String(36), nullable=True),
    )
    nobody = {"number": 1, "term": 0, "url": "", "since_ms": 0, "is_vacant": True}
    op.bulk_insert(table, [nobody])


def downgrade() -> None:
    op.drop_table("leadership")
