"""Which certificates a service elsewhere may show."""

import ssl
from pathlib import Path

import httpx

from tiny_harness.errors import ConfigError


def trust_of(ca_file: Path | None) -> ssl.SSLContext | None:
    """Trust the certificates in a file beside those of public authorities; without a file these alone.

    Raises:
        ConfigError: The file cannot be used.
    """
    if ca_file is None:
        return None
    context = httpx.create_ssl_context()
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:  # it cannot be read, or holds no certificate
        raise ConfigError(f"{ca_file} cannot be used ({error.strerror or error})", key="hooks.ca_file") from error
    return context
