"""Alembic migrations of the store, additive within a minor release."""
