"""The conformance run: all rules, in order, against one service (DESIGN: hooks)."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Final, Literal

from pydantic import SecretStr

from tiny_harness.hooks.conformance import call_rules, jsonrpc, perimeter_rules
from tiny_harness.hooks.conformance.finding import Finding, Judgement, Rule, failed
from tiny_harness.hooks.conformance.peer import Peer, Silence, open_client
from tiny_harness.hooks.conformance.speaker import Run, Speaker

Transport = Literal["jsonrpc", "mcp"]

RULES: Final[dict[Transport, Sequence[Rule[Run]]]] = {
    "jsonrpc": (*call_rules.RULES, *perimeter_rules.RULES, *perimeter_rules.JSONRPC_RULES, *jsonrpc.RULES),
    "mcp": (*(rule for rule in call_rules.RULES if rule.name != "failure"), *perimeter_rules.RULES),
}


class Unreachable(Exception):
    """Nobody listens at the address."""


async def check(url: str, transport: Transport = "jsonrpc", *, key_id: str, secret: SecretStr | None) -> list[Finding]:
    """Check a service against the remote contract. Each of its executors is called, with made-up contexts.

    Args:
        url: Where it answers.
        transport: What it speaks.
        key_id: A key that it knows.
        secret: The key's secret; `None` sends unsigned calls, and skips the rules on signatures.

    Returns:
        How each rule came out, in a fixed order.

    Raises:
        Unreachable: Nobody listens there.
    """
    async with open_client() as client:
        peer = Peer(client, url, key_id, secret)
        async with _speaking(transport, peer, url) as speaker:
            run = Run(peer, speaker)
            return [Finding(rule.name, rule.says, *_pair(await _judge(rule, run, url))) for rule in RULES[transport]]


async def _judge(rule: Rule[Run], run: Run, url: str) -> Judgement:
    try:
        return await rule.judge(run)
    except Silence as silence:
        if silence.is_refused and rule.name == "health":
            raise Unreachable(f"{url} {silence}") from silence
        return failed(str(silence))


def _pair(judgement: Judgement) -> tuple[Literal["ok", "failed", "skipped"], str]:
    return judgement.outcome, judgement.why


@asynccontextmanager
async def _speaking(transport: Transport, peer: Peer, url: str) -> AsyncGenerator[Speaker]:
    if transport == "jsonrpc":
        yield jsonrpc.JsonRpcSpeaker(peer)
        return
    from tiny_harness.hooks import remote_mcp  # slow to import
    from tiny_harness.hooks.conformance.mcp import McpSpeaker

    async with remote_mcp.open_client() as client:
        yield McpSpeaker(remote_mcp.McpService(client, url, peer))
