"""What hooks leave behind, who runs, and how far observers are."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def _task_id() -> "sa.Column[str]":
    target = sa.ForeignKey("tasks.task_id", ondelete="CASCADE")
    return sa.Column("task_id", sa.String(64), target, primary_key=True)


def upgrade() -> None:
    """Create what 0.2 needs."""
    op.create_index("tasks_by_update", "tasks", ["updated_at", "task_id"])
    op.create_table(
        "verdicts",
        _task_id(),
        sa.Column("cause", sa.String(128), primary_key=True),
        sa.Column("part", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("point", sa.String(64), nullable=False),
        sa.Column("executor", sa.String(256), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("ms", sa.Integer, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "catalogue",
        sa.Column("digest", sa.String(64), primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "engines",
        sa.Column("engine_id", sa.String(256), primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("health", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "observers",
        sa.Column("observer", sa.String(256), primary_key=True),
        sa.Column("since", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "observed",
        sa.Column(
            "observer", sa.String(256), sa.ForeignKey("observers.observer", ondelete="CASCADE"), primary_key=True
        ),
        _task_id(),
        sa.Column("seq", sa.Integer, nullable=False),
    )
    op.create_index("observed_by_task", "observed", ["task_id"])


def downgrade() -> None:
    """Drop what 0.1 does not have."""
    for table in ("observed", "observers", "engines", "catalogue", "verdicts"):
        op.drop_table(table)
    op.drop_index("tasks_by_update", "tasks")
