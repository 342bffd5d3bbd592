"""A provider's key and address, checked before anything is asked."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from tiny_harness.errors import ConfigError
from tiny_harness.settings import HostedModels


def read_key(settings: HostedModels, section: str, environ: Mapping[str, str]) -> str | None:
    """Read the key that goes with a provider's section; `None`: it is asked without one.

    Args:
        settings: The section.
        section: Its name, such as `openai`.
        environ: Where the key is.

    Raises:
        ConfigError: No key, and no `base_url` of a server that may need none; or a bad key or address.
    """
    key = environ.get(settings.key_variable, "").strip()
    if not key and settings.base_url is None:
        raise ConfigError(
            f"the variable {settings.key_variable} is not set; set it, or set base_url in section [{section}] to a "
            "server that needs no key, or try `tiny-harness demo`"
        )
    if not (key.isascii() and key.isprintable()):
        raise ConfigError(f"the variable {settings.key_variable} holds characters that no key has")
    if not _is_address(settings.url):
        raise ConfigError("is no http:// or https:// address", key=f"{section}.base_url")
    return key or None


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and url.isprintable()
    except ValueError:
        return False
