"""Supervision on a clock that skips."""
