"""`python -m tiny_harness_gateway --config PATH`: serves A2A until told to stop."""

from tiny_harness.service import run_service
from tiny_harness_gateway.serving import serve

if __name__ == "__main__":
    run_service("tiny_harness_gateway", "Serve A2A, with engines elsewhere.", serve)
