"""The activities: everything that a workflow wants done in the world."""
