"""What a test says to a harness and may say again: a message that is sent twice is taken once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.e2e.home import PATIENCE_S, Life
from tests.served import http_client
from tiny_harness.client import Address, TurnResult, connect
from tiny_harness.ids import new_id


@dataclass(frozen=True, slots=True)
class Said:
    """A message, to be sent as often as it takes."""

    text: str
    task_id: str = ""
    message_id: str = field(default_factory=new_id)


async def acknowledged(life: Life, said: Said) -> Said:
    """Send without waiting for an answer; the same with the task that it is on."""
    message: dict[str, Any] = {
        "messageId": said.message_id,
        "role": "ROLE_USER",
        "parts": [{"text": said.text}],
        **({"taskId": said.task_id} if said.task_id else {}),
    }
    params = {"message": message, "configuration": {"returnImmediately": True}}
    async with http_client(life) as http:
        call = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}
        answer = (await http.post("/rpc", json=call)).json()
    return replace(said, task_id=answer["result"]["task"]["id"])


async def answers(life: Life, said: Sequence[Said]) -> list[TurnResult]:
    """Get what each was answered: one that is sent again is not taken again."""
    async with connect(Address(life.url, token=life.token), "ann") as client, asyncio.timeout(PATIENCE_S):
        return await asyncio.gather(
            *(client.send(one.text, message_id=one.message_id, task_id=one.task_id or None) for one in said)
        )


async def replies(life: Life, said: Sequence[Said]) -> list[str]:
    """Get the words of each answer."""
    return [answer.reply for answer in await answers(life, said)]
