"""The gateway: authenticates participants, routes A2A calls to workflows, streams events."""
