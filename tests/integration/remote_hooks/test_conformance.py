"""The conformance run: a good service passes, and each flaw is found under the name of its rule and no other."""

import pytest

from tests.integration.remote_hooks.contexts import SECRET
from tests.integration.remote_hooks.mcp_service import build, serving
from tests.integration.remote_hooks.server import listening
from tests.integration.remote_hooks.small_service import FLAWS, KEY_ID, SmallService
from tiny_harness.hooks.conformance import RULES, Unreachable, check


async def test_a_good_service_keeps_all_rules():
    async with listening(SmallService()) as url:
        findings = await check(url, key_id=KEY_ID, secret=SECRET)
    assert {finding.rule: finding.outcome for finding in findings} == {rule.name: "ok" for rule in RULES["jsonrpc"]}


@pytest.mark.parametrize(("flaw", "rules"), FLAWS.items())
async def test_a_flaw_is_found_under_the_name_of_its_rule(flaw: str, rules: set[str]):
    async with listening(SmallService(flaw)) as url:
        findings = await check(url, key_id=KEY_ID, secret=SECRET)
    assert {finding.rule for finding in findings if finding.outcome == "failed"} == rules


async def test_without_a_key_the_rules_on_signatures_are_skipped():
    async with listening(SmallService("takes unsigned calls")) as url:
        findings = await check(url, key_id="", secret=None)
    outcomes = {finding.rule: finding.outcome for finding in findings}
    signing = {"unsigned", "bad-signature", "unknown-key", "old-signature", "replay"}
    assert {rule for rule, outcome in outcomes.items() if outcome == "skipped"} == signing
    assert "failed" not in outcomes.values()


async def test_a_wrong_secret_breaks_more_than_the_signature_rules():
    async with listening(SmallService()) as url:
        findings = await check(url, key_id="unknown", secret=SECRET)
    (health, call, *_) = findings
    assert (health.outcome, call.outcome) == ("failed", "skipped")
    assert "401" in health.why


@pytest.mark.parametrize("transport", ["jsonrpc", "mcp"])
async def test_a_dead_address_is_no_finding(transport: str):
    async with listening(SmallService()) as url:
        pass
    with pytest.raises(Unreachable):
        await check(url, transport, key_id=KEY_ID, secret=SECRET)


@pytest.mark.parametrize("stateless", [True, False])
async def test_an_mcp_service_is_checked_too(stateless: bool):
    app, _ = build(stateless=stateless)
    async with serving(app) as url:
        findings = await check(url, "mcp", key_id=KEY_ID, secret=SECRET)
    outcomes = {finding.rule: finding.outcome for finding in findings}
    # It bounds no bodies of its own; what the SDK answers to one that is too large is not in our words.
    assert {rule for rule, outcome in outcomes.items() if outcome == "failed"} == {"oversize"}
    assert outcomes.keys() == {rule.name for rule in RULES["mcp"]}
