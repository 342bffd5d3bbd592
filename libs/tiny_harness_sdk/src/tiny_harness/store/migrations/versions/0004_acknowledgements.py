"""Who said that they have what they needed of a supervised task."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the table of acknowledgements."""
    op.create_table(
        "acknowledgements",
        sa.Column("task_id", sa.String(64), sa.ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("participant_id", sa.String(128), primary_key=True),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("acknowledgements")
