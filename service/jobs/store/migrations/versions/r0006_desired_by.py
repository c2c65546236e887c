"""Who asked for a job's desired state."""

import sqlalchemy as sa
from alembic import op

revision = "r0006"
down_revision: str | None = "r0005"
branch_labels: str | None = None
depends_on: str | None = None


def upgrade() -> None:
    op.add_column("jobs", sa.Column("desired_by", sa.Text, nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "desired_by")
