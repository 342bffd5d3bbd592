"""What became of the tool calls of a step."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the table of calls."""
    op.create_table(
        "tool_calls",
        sa.Column("task_id", sa.String(64), sa.ForeignKey("tasks.task_id", ondelete="CASCADE"), primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("call", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("claim", sa.String(64)),
        sa.Column("record", sa.Text),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop it."""
    op.drop_table("tool_calls")
