"""Who holds a credential: one file for each way to know it."""

from tiny_harness_gateway.identity.credentials import Credentials, Denied, Identity
from tiny_harness_gateway.identity.open import open_credentials

__all__ = ["Credentials", "Denied", "Identity", "open_credentials"]
