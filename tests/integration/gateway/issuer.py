"""An identity provider: keys that it publishes, rotates and signs with, and a server that may be away."""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ISSUER: Final = "https://id.example"
AUDIENCE: Final = "tiny-harness"

Json = dict[str, Any]


class Issuer:
    """Signs tokens with the newest of its keys, and publishes all of them."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[str, Any]] = {}
        self.reads = 0
        self.is_away = False
        self.rotate("k1")

    def rotate(self, kid: str, algorithm: str = "ES256") -> None:
        """Sign with a new key from now on."""
        self.keys[kid] = (algorithm, make_key(algorithm))
        self.kid = kid

    def sign(self, name: str = "ann", *, headers: Json | None = None, kid: str | None = None, **claims: Any) -> str:
        """Make a token for an hour; a claim that is None is left out."""
        now = time.time()
        every = {"sub": name, "iss": ISSUER, "aud": AUDIENCE, "exp": now + 3600, **claims}
        algorithm, key = self.keys[kid or self.kid]
        left = {claim: value for claim, value in every.items() if value is not None}
        return jwt.encode(left, key, algorithm, {"kid": kid or self.kid, **(headers or {})})

    @property
    def set(self) -> bytes:
        """The JWK set."""
        return json.dumps({"keys": [public(kid, *key) for kid, key in self.keys.items()]}).encode()

    async def read(self) -> bytes:
        """Read the set, as over the network."""
        self.reads += 1
        await asyncio.sleep(0)
        if self.is_away:
            raise OSError("the provider is away")
        return self.set


def make_key(algorithm: str) -> Any:
    """Make a private key that signs so."""
    if algorithm.startswith(("RS", "PS")):
        return rsa.generate_private_key(65537, 2048)
    return ed25519.Ed25519PrivateKey.generate() if algorithm == "EdDSA" else ec.generate_private_key(ec.SECP256R1())


def public(kid: str, algorithm: str, key: Any) -> Json:
    """Give a key as it is published."""
    writers = {"R": RSAAlgorithm, "P": RSAAlgorithm, "E": OKPAlgorithm if algorithm == "EdDSA" else ECAlgorithm}
    return {**writers[algorithm[0]].to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}


@asynccontextmanager
async def serving_set(issuer: Issuer) -> AsyncGenerator[str]:
    """Serve the set on loopback; its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        status = "503 Away" if issuer.is_away else "200 OK"
        body = b"" if issuer.is_away else issuer.set
        issuer.reads += 1
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/jwks.json"
