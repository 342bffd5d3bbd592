"""The credential that an agent is sent: one secret from the environment, in the place that its card names.

A card is a stranger's text: it chooses among the ways that we know, and cannot make us send the secret anywhere else.
"""

import base64
import os
import re
from collections.abc import Mapping
from typing import Final

from a2a.types import AgentCard, SecurityScheme
from pydantic import SecretStr

from tiny_harness.settings import AgentSettings
from tiny_harness_engine.agents.fault import AgentFault
from tiny_harness_engine.tools.words import one_line

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_VISIBLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_TAKEN: Final = re.compile(
    r"host|content-.*|transfer-.*|connection|keep-alive|upgrade|te|trailer|expect|accept.*|user-agent|cookie"
    r"|a2a-.*|x-participant-.*|last-event-id|cache-control",
    re.IGNORECASE,
)
"""Headers with a meaning of their own, which a key would change."""


def read_secret(settings: AgentSettings, environ: Mapping[str, str] = os.environ) -> SecretStr | None:
    """Read the secret that the configuration names, if it names one.

    Raises:
        AgentFault: It is not there, or cannot be sent.
    """
    if settings.token_env is None:
        return None
    value = environ.get(settings.token_env, "").strip()
    if not _VISIBLE.fullmatch(value):
        raise AgentFault("final", f"{settings.token_env}, which is to hold its credential, holds nothing to send")
    return SecretStr(value)


def credential_headers(card: AgentCard, secret: SecretStr | None) -> dict[str, str]:
    """Put the secret where the card wants it: the first of its requirements that can be met counts.

    Raises:
        AgentFault: None can be.
    """
    wanted = [list(requirement.schemes) for requirement in card.security_requirements]
    if not wanted:
        return {} if secret is None else {"Authorization": f"Bearer {secret.get_secret_value()}"}
    faults: list[str] = []
    for names in wanted:
        try:
            return _meet(card, names, secret)
        except AgentFault as fault:
            faults.append(fault.reason)
    raise AgentFault("final", f"no credential of ours is what it wants: {'; '.join(faults)}")


def _meet(card: AgentCard, names: list[str], secret: SecretStr | None) -> dict[str, str]:
    if not names:
        return {}
    shown = one_line(", ".join(names), 100)
    if len(names) > 1:
        raise AgentFault("final", f"{shown} together, and there is one secret")
    if names[0] not in card.security_schemes:
        raise AgentFault("final", f"{shown}, which its card does not describe")
    if secret is None:
        raise AgentFault("final", f"{shown}, and no token_env is configured")
    return _headers(card.security_schemes[names[0]], shown, secret.get_secret_value())


def _headers(scheme: SecurityScheme, shown: str, secret: str) -> dict[str, str]:
    kind = scheme.WhichOneof("scheme")
    if kind in ("oauth2_security_scheme", "open_id_connect_security_scheme"):
        return {"Authorization": f"Bearer {secret}"}
    if kind == "http_auth_security_scheme":
        return _http(scheme.http_auth_security_scheme.scheme.lower(), shown, secret)
    if kind == "api_key_security_scheme" and scheme.api_key_security_scheme.location.lower() == "header":
        name = scheme.api_key_security_scheme.name
        if not _HEADER.fullmatch(name) or _TAKEN.fullmatch(name):
            raise AgentFault("final", f"{shown}, a key in a header that is no place for keys")
        return {name: secret}
    if kind == "api_key_security_scheme":
        raise AgentFault("final", f"{shown}, a key that is not in a header")
    raise AgentFault("final", f"{shown}, a scheme that is not supported")


def _http(scheme: str, shown: str, secret: str) -> dict[str, str]:
    if scheme == "bearer":
        return {"Authorization": f"Bearer {secret}"}
    if scheme == "basic" and ":" in secret:
        return {"Authorization": f"Basic {base64.b64encode(secret.encode()).decode()}"}
    if scheme == "basic":
        raise AgentFault("final", f"{shown}, and the secret is not USER:PASSWORD")
    raise AgentFault("final", f"{shown}, HTTP authentication by {one_line(scheme, 40)}, which is not supported")
