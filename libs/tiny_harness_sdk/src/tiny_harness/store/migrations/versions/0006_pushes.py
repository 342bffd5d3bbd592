"""Push configurations, and how far each was served."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table."""
    task = sa.ForeignKey("tasks.task_id", ondelete="CASCADE")
    op.create_table(
        "pushes",
        sa.Column("task_id", sa.String(64), task, primary_key=True),
        sa.Column("participant_id", sa.String(128), primary_key=True),
        sa.Column("config_id", sa.String(128), primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("secret", sa.LargeBinary, nullable=False),
        sa.Column("delivered_seq", sa.Integer, nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("pushes")
