"""Signed calls: who is believed, and how often."""

import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import SecretStr

from tiny_harness.errors import SignatureRefused
from tiny_harness.hooks.signature import SignedCall, Verifier, secret_variable, secrets_for, sign

NEW, OLD = SecretStr("the new secret"), SecretStr("the old secret")
NOW = 1_800_000_000
CALL: dict[str, Any] = {"method": "POST", "path": "/rpc?a=1", "body": b'{"x":1}'}


def signed(secret: SecretStr = NEW, **changes: Any) -> dict[str, str]:
    facts: dict[str, Any] = {"key_id": "deploys", "timestamp": NOW, "delivery_id": "d-1", "attempt": 1}
    return sign(secret, **{**CALL, **facts, **changes})


def verifier(*secrets: SecretStr, now: Callable[[], float] = lambda: NOW, **bounds: int) -> Verifier:
    return Verifier(lambda key_id: secrets if key_id == "deploys" else (), now=now, **bounds)


def check(verifier: Verifier, headers: dict[str, str], **changes: Any) -> SignedCall:
    call = {**CALL, **changes}
    return verifier.check(call["method"], call["path"], headers, call["body"])


def test_the_signed_text_is_the_one_of_the_contract() -> None:
    digest = hashlib.sha256(CALL["body"]).hexdigest()
    text = f"v1\nPOST\n/rpc?a=1\ndeploys\n{NOW}\nd-1\n1\n{digest}"
    assert signed() == {
        "X-Tiny-Harness-Key": "deploys",
        "X-Tiny-Harness-Timestamp": str(NOW),
        "X-Tiny-Harness-Delivery": "d-1",
        "X-Tiny-Harness-Attempt": "1",
        "X-Tiny-Harness-Signature": "v1=" + hmac.new(b"the new secret", text.encode(), hashlib.sha256).hexdigest(),
    }


def test_a_signed_call_is_believed_and_says_which_delivery_it_is() -> None:
    headers = {name.lower(): value for name, value in signed(attempt=2).items()}
    assert check(verifier(NEW), headers) == SignedCall("deploys", "d-1", 2)


def test_both_secrets_of_a_key_are_taken_while_it_is_changed() -> None:
    both = verifier(NEW, OLD)
    check(both, signed(NEW))
    check(both, signed(OLD))


@pytest.mark.parametrize("name", ["Key", "Timestamp", "Delivery", "Attempt", "Signature"])
@pytest.mark.parametrize("value", [None, "", "a\nb", "x" * 200, "é"])
def test_a_header_that_is_missing_or_malformed_is_refused(name: str, value: str | None) -> None:
    headers = signed()
    del headers[f"X-Tiny-Harness-{name}"]
    if value is not None:
        headers[f"X-Tiny-Harness-{name}"] = value
    with pytest.raises(SignatureRefused):
        check(verifier(NEW), headers)


@pytest.mark.parametrize(
    "change", [{"method": "PUT"}, {"path": "/rpc"}, {"path": "/rpc?a=2"}, {"body": b'{"x":2}'}, {"body": b""}]
)
def test_what_was_signed_is_all_that_the_signature_is_good_for(change: dict[str, Any]) -> None:
    with pytest.raises(SignatureRefused):
        check(verifier(NEW), signed(), **change)


@pytest.mark.parametrize(("name", "value"), [("Delivery", "d-2"), ("Attempt", "2"), ("Timestamp", str(NOW + 1))])
def test_a_signed_header_cannot_be_changed(name: str, value: str) -> None:
    with pytest.raises(SignatureRefused):
        check(verifier(NEW), {**signed(), f"X-Tiny-Harness-{name}": value})


def test_an_unknown_key_and_a_wrong_secret_are_refused() -> None:
    with pytest.raises(SignatureRefused):
        check(verifier(NEW), signed(key_id="others"))
    with pytest.raises(SignatureRefused):
        check(verifier(NEW), signed(OLD))


@pytest.mark.parametrize("skew", [-301, 301, -(10**9), 10**9])
def test_a_timestamp_far_from_the_clock_is_refused(skew: int) -> None:
    with pytest.raises(SignatureRefused):
        check(verifier(NEW), signed(timestamp=NOW + skew))


@pytest.mark.parametrize("skew", [-300, 0, 300])
def test_a_signature_is_believed_once(skew: int) -> None:
    one = verifier(NEW)
    headers = signed(timestamp=NOW + skew)
    check(one, headers)
    with pytest.raises(SignatureRefused):
        check(one, headers)


def test_a_fast_clocks_signature_is_remembered_as_long_as_its_timestamp_is_good() -> None:
    now = [NOW]
    one = verifier(NEW, now=lambda: now[0])
    headers = signed(timestamp=NOW + 299)
    check(one, headers)
    now[0] = NOW + 590  # long after 300 s, but the timestamp is only 291 s old
    with pytest.raises(SignatureRefused):
        check(one, headers)


def test_a_refused_call_uses_nothing_up() -> None:
    one = verifier(NEW)
    with pytest.raises(SignatureRefused):
        check(one, signed(), body=b"other")
    check(one, signed())


def test_a_full_memory_refuses_until_it_may_forget() -> None:
    now = [NOW]
    one = verifier(NEW, now=lambda: now[0], max_seen=2)
    check(one, signed(delivery_id="1"))
    check(one, signed(delivery_id="2"))
    with pytest.raises(SignatureRefused):
        check(one, signed(delivery_id="3"))
    now[0] = NOW + 301
    check(one, signed(delivery_id="3", timestamp=NOW + 301))


def test_secrets_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert secret_variable("my-deploys.eu") == "TINY_HARNESS_HOOK_SECRET_MY_DEPLOYS_EU"
    monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_MY_DEPLOYS_EU", " new , old, older")
    assert [secret.get_secret_value() for secret in secrets_for("my-deploys.eu")] == ["new", "old"]
    assert "new" not in repr(secrets_for("my-deploys.eu"))


@pytest.mark.parametrize("value", [None, "", " , ,"])
def test_a_key_without_a_secret_has_none(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("TINY_HARNESS_HOOK_SECRET_DEPLOYS", raising=False)
    if value is not None:
        monkeypatch.setenv("TINY_HARNESS_HOOK_SECRET_DEPLOYS", value)
    assert secrets_for("deploys") == ()
    assert secrets_for("../x=y") == ()
