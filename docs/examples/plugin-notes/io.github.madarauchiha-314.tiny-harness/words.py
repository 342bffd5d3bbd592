"""Names that must not be said. `hooks.py` imports them from beside itself."""

CODENAMES = frozenset({"project falcon", "project heron"})
