"""A worker: takes supervised tasks over MCP, one after the other, and says how each one ended.

TINY_HARNESS_TOKEN=... python worker.py http://127.0.0.1:8080/mcp bob
"""

import asyncio
import os
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL, NAME = sys.argv[1:3]
HEADERS = {"Authorization": f"Bearer {os.environ['TINY_HARNESS_TOKEN']}", "X-Participant-Id": NAME}


async def work(task: str) -> str:
    """Your agent stands here."""
    return f"I have read it: {len(task)} characters."


async def main() -> None:
    """Work for ever. A task that was taken and not ended is simply taken again."""
    async with (
        httpx2.AsyncClient(headers=HEADERS, timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http)) as harness,
    ):
        pause_s = 0.1
        while True:
            listed = (await harness.call_tool("task_list", {})).structured_content or {}
            given = [task for task in listed["tasks"] if task["state"] == "WORKING"]
            for task in given:
                shown = await harness.call_tool("task_get", {"task_id": task["task_id"]})
                done = {"task_id": task["task_id"], "status": "done", "summary": await work(str(shown.content))}
                await harness.call_tool("task_update", done)
            # A participant has so many calls a minute: look less often when there is nothing to do.
            pause_s = 0.1 if given else min(2 * pause_s, 2.0)
            await asyncio.sleep(pause_s)


asyncio.run(main())
