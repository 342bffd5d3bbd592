"""`python -m tiny_harness_engine --config PATH`: works on tasks until told to stop."""

from tiny_harness.service import run_service
from tiny_harness_engine.serving import serve

if __name__ == "__main__":
    run_service("tiny_harness_engine", "Work on tasks, with gateways elsewhere.", serve)
