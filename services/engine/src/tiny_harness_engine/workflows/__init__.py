"""The workflows: decisions over time, no I/O."""
