"""Remote agents: their cards, the calls to them, and the stand-ins of the sub-tasks that they work on."""
