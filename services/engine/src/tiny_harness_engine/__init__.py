"""The engine: runs task workflows and their activities; the only writer of task data."""
