"""The first tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def _task_id(**options: object) -> "sa.Column[str]":
    target = sa.ForeignKey("tasks.task_id", ondelete="CASCADE")
    return sa.Column("task_id", sa.String(64), target, nullable=False, **options)  # pyright: ignore[reportArgumentType] - passed through


def upgrade() -> None:
    """Create what 0.1 needs."""
    op.create_table(
        "tasks",
        sa.Column("task_id", sa.String(64), primary_key=True),
        sa.Column("context_id", sa.String(256), nullable=False),
        sa.Column("state", sa.String(32), nullable=False),
        sa.Column("head", sa.Integer, nullable=False),
        sa.Column("snapshot", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
    )
    op.create_index("tasks_by_state", "tasks", ["state", "task_id"])
    op.create_index("tasks_by_context", "tasks", ["context_id"])
    op.create_table(
        "task_participants",
        sa.Column("participant_id", sa.String(128), primary_key=True),
        _task_id(primary_key=True),
        sa.Column("updated_at", sa.BigInteger, nullable=False),
    )
    op.create_index("task_participants_by_update", "task_participants", ["participant_id", "updated_at", "task_id"])
    op.create_index("task_participants_by_task", "task_participants", ["task_id"])
    op.create_table(
        "events",
        _task_id(primary_key=True),
        sa.Column("seq", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("cause", sa.String(128), nullable=False),
        sa.Column("part", sa.Integer, nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("payload", sa.Text, nullable=False),
        sa.Column("digest", sa.String(64)),
        sa.Column("at", sa.BigInteger, nullable=False),
        sa.UniqueConstraint("task_id", "cause", "part", name="events_by_cause"),
    )
    op.create_table(
        "steps",
        _task_id(primary_key=True),
        sa.Column("turn", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("step", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("record", sa.Text, nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "task_keys",
        sa.Column("participant_id", sa.String(128), primary_key=True),
        sa.Column("key", sa.String(256), primary_key=True),
        sa.Column("task_id", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )
    op.create_index("task_keys_by_task", "task_keys", ["task_id"])
    op.create_table(
        "cancel_requests",
        _task_id(primary_key=True),
        sa.Column("requested_by", sa.String(128), nullable=False),
        sa.Column("at", sa.BigInteger, nullable=False),
    )


def downgrade() -> None:
    """Drop everything."""
    for table in ("cancel_requests", "task_keys", "steps", "events", "task_participants", "tasks"):
        op.drop_table(table)
