"""Tokens of the REST API.

Revision ID: r0002
"""

import sqlalchemy as sa
from alembic import op

revision = "r0002"
down_revision: str | None = "r0001"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
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


def downgrade() -> None:
    op.drop_table("tokens")
