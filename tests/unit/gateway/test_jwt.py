"""JWTs: what is believed of them, and how the issuer's keys come and go."""

import base64
import json
import logging
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.integration.gateway.issuer import AUDIENCE, ISSUER, Issuer, make_key, public
from tiny_harness.errors import Unavailable
from tiny_harness.settings import AuthSettings
from tiny_harness_gateway.identity import Denied, Identity
from tiny_harness_gateway.identity.jwk_set import read_set
from tiny_harness_gateway.identity.jwt import SignedTokens
from tiny_harness_gateway.identity.keys import IssuerKeys


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def settings(**more: Any) -> AuthSettings:
    given = {"mode": "jwt", "issuer": ISSUER, "audience": AUDIENCE, "jwks_url": "https://id.example/jwks", **more}
    return AuthSettings.model_validate(given)


def checker(issuer: Issuer, clock: Clock | None = None, **more: Any) -> SignedTokens:
    auth = settings(**more)
    return SignedTokens(auth, IssuerKeys(issuer.read, auth, clock or Clock()))


async def told(check: SignedTokens, token: str | None) -> Identity | str:
    found = await check.identify(token, by_socket=False)
    return found.reason if isinstance(found, Denied) else found


@pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
async def test_a_token_that_is_signed_as_configured_says_who_holds_it(algorithm: str) -> None:
    issuer = Issuer()
    issuer.rotate("other", algorithm)
    assert await told(checker(issuer), issuer.sign("ann")) == Identity("ann")


async def test_claims_of_other_names_say_who_holds_it_and_what_they_are() -> None:
    issuer = Issuer()
    check = checker(issuer, participant_claim="email", kind_claim="typ")
    assert await told(check, issuer.sign("x", email="bot@example.com", typ="agent")) == Identity(
        "bot@example.com", "agent"
    )
    assert await told(check, issuer.sign("x", email="a", typ="god")) == "the claim typ is neither human nor agent"


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": time.time() - 40}, "this token has expired"),
        ({"nbf": time.time() + 3000}, "this token is not valid yet"),
        ({"iss": "https://evil.example"}, "this token is of another issuer"),
        ({"aud": "another"}, "this token is meant for another audience"),
        ({"exp": None}, "this token lacks a claim that is needed"),
        ({"iss": None}, "this token lacks a claim that is needed"),
        ({"aud": None}, "this token lacks a claim that is needed"),
        ({"sub": None}, "this token lacks a claim that is needed"),
        ({"sub": "a b"}, "the claim sub holds no participant id"),
        ({"sub": "ann\n"}, "the claim sub holds no participant id"),
    ],
)
async def test_a_token_with_a_wrong_claim_says_which(claims: dict[str, Any], reason: str) -> None:
    issuer = Issuer()
    assert await told(checker(issuer), issuer.sign(**{"name": "ann", **claims})) == reason


async def test_clocks_may_differ_by_the_leeway() -> None:
    issuer = Issuer()
    late = issuer.sign("ann", exp=time.time() - 20)
    assert await told(checker(issuer), late) == Identity("ann")
    assert await told(checker(issuer, leeway=0), late) == "this token has expired"


def as_symmetric(issuer: Issuer) -> str:
    """The oldest trick: the public key taken for a secret."""
    claims = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 99}
    return jwt.encode(claims, base64.b64encode(issuer.set), "HS256", {"kid": "k1"})


def unsigned(issuer: Issuer) -> str:
    claims = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 99}
    return jwt.encode(claims, None, "none", {"kid": issuer.kid})


def with_a_key_of_its_own(issuer: Issuer) -> str:
    forger = Issuer()
    return forger.sign("ann", headers={"jwk": public("k1", *forger.keys["k1"]), "kid": issuer.kid})


def changed(issuer: Issuer) -> str:
    head, body, signature = issuer.sign("ann").split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    forged = base64.urlsafe_b64encode(json.dumps({**claims, "sub": "bob"}).encode()).decode().rstrip("=")
    return f"{head}.{forged}.{signature}"


def critical(issuer: Issuer) -> str:
    return issuer.sign("ann", headers={"crit": ["b64"], "b64": True})


def with_another_algorithm(issuer: Issuer) -> str:
    """RS256 said of a key on a curve."""
    forger = Issuer()
    forger.rotate("k1", "RS256")
    return forger.sign("ann", kid="k1")


@pytest.mark.parametrize(
    "forge", [as_symmetric, unsigned, with_a_key_of_its_own, changed, critical, with_another_algorithm]
)
async def test_a_forged_token_lets_nobody_in(forge: Callable[[Issuer], str]) -> None:
    issuer = Issuer()
    assert isinstance(await told(checker(issuer), forge(issuer)), str)


@pytest.mark.parametrize("token", ["", "x", "a.b.c", "ä", "." * 10, "e30.e30.e30", "tht_" + "a" * 43])
async def test_garbage_lets_nobody_in(token: str) -> None:
    assert isinstance(await told(checker(Issuer()), token), str)
    assert isinstance(await told(checker(Issuer()), None), str)


def test_a_set_gives_public_keys_of_enough_bits_only() -> None:
    issuer = Issuer()
    good = public("good", *issuer.keys["k1"])
    short = public("short", "RS256", rsa.generate_private_key(65537, 1024))
    secret = {"kty": "oct", "kid": "secret", "k": "AAAA"}
    private = {**good, "kid": "private", "d": "AAAA"}
    other = {**good, "kid": "enc", "use": "enc"}
    says_else = {**good, "kid": "else", "alg": "RS256"}
    body = {"keys": [short, secret, private, other, says_else, 7, {}, {**good, "kid": 7}, {**good, "x": "!"}, good]}
    assert list(read_set(json.dumps(body).encode())) == ["good"]
    for bad in (b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": []}', json.dumps({"keys": [secret]}).encode()):
        with pytest.raises(ValueError, match="JWK set"):
            read_set(bad)


async def test_a_new_key_is_read_at_once_and_an_old_one_dropped() -> None:
    issuer, clock = Issuer(), Clock()
    check = checker(issuer, clock)
    old = issuer.sign("ann")
    assert await told(check, old) == Identity("ann")
    issuer.rotate("k2")
    del issuer.keys["k1"]
    clock.now = 30
    assert await told(check, issuer.sign("bob")) == Identity("bob")
    assert await told(check, old) == "this token is signed with a key that the issuer does not have"
    assert issuer.reads == 2


async def test_unknown_keys_are_looked_for_now_and_then_only() -> None:
    issuer, clock, forger = Issuer(), Clock(), Issuer()
    check = checker(issuer, clock)
    for number in range(50):
        forger.rotate(f"unknown-{number}")
        clock.now = number
        assert isinstance(await told(check, forger.sign("ann")), str)
        assert await told(check, issuer.sign("ann")) == Identity("ann")
    assert issuer.reads == 2, "at 0 and at 30 s"


async def test_a_provider_that_is_away_locks_nobody_out(caplog: pytest.LogCaptureFixture) -> None:
    issuer, clock = Issuer(), Clock()
    check = checker(issuer, clock)
    token = issuer.sign("ann")
    issuer.is_away = True
    with pytest.raises(Unavailable):
        await check.identify(token, by_socket=False)
    issuer.is_away, clock.now = False, 30
    assert await told(check, token) == Identity("ann")
    issuer.is_away, clock.now = True, 60
    issuer.rotate("k2")
    assert isinstance(await told(check, issuer.sign("ann")), str)
    assert await told(check, token) == Identity("ann")
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2


async def test_a_token_without_a_key_id_means_the_only_key() -> None:
    issuer = Issuer()
    claims = {"sub": "ann", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + 99}
    token = jwt.encode(claims, issuer.keys["k1"][1], "ES256")
    assert await told(checker(issuer), token) == Identity("ann")
    issuer.keys["k2"] = ("ES256", make_key("ES256"))
    assert isinstance(await told(checker(issuer), token), str)
