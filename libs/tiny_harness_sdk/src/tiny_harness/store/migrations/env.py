"""Runs migrations on the connection that `tiny_harness.store.migrate` hands over."""

from alembic import context

from tiny_harness.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata)
with context.begin_transaction():
    context.run_migrations()
