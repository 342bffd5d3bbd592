"""A harness as an executor server meets it: signed calls, and calls that are wrong in one way."""

import itertools
import json
import time
from typing import Any

import httpx
from pydantic import SecretStr

from tiny_harness.hooks.signature import sign

SECRET = SecretStr("a secret of the tests")
_numbers = itertools.count(1)


class Peer:
    """Calls one server over HTTP."""

    def __init__(self, client: httpx.AsyncClient, url: str, key_id: str) -> None:
        self._client = client
        self.url = httpx.URL(url)
        self._key_id = key_id

    def headers(self, body: bytes, **changes: Any) -> dict[str, str]:
        """Sign a body, as it is to arrive at the server's path."""
        facts: dict[str, Any] = {
            "method": "POST",
            "path": self.url.raw_path.decode(),
            "key_id": self._key_id,
            "timestamp": int(time.time()),
            "delivery_id": f"delivery-{next(_numbers)}",
            "attempt": 1,
        }
        secret = changes.pop("secret", SECRET)
        return {**sign(secret, **{**facts, **changes}, body=body), "Content-Type": "application/json"}

    async def post(self, body: bytes, headers: dict[str, str] | None = None) -> httpx.Response:
        """Send bytes; signed, unless headers are given."""
        return await self._client.post(self.url, content=body, headers=headers or self.headers(body))

    async def get(self, path: str) -> httpx.Response:
        """Get another path."""
        return await self._client.get(self.url.join(path))

    async def call(self, method: str, params: Any = None, **changes: Any) -> dict[str, Any]:
        """Call a method; the whole answer."""
        body = rpc_body(method, {} if params is None else params)
        response = await self.post(body, self.headers(body, **changes))
        assert response.status_code == 200, response.text
        return response.json()


def rpc_body(method: str, params: Any, number: Any = "n-1") -> bytes:
    """Make a JSON-RPC request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
