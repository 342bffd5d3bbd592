"""Tells a receiver what it does not know yet of a task: one event after the other, each a request of its own."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import httpx
from temporalio import activity

from tiny_harness import access
from tiny_harness.events import Event
from tiny_harness.push import PushKey, PushSecret, open_secret
from tiny_harness.push_address import Place, Refused, find_place
from tiny_harness.seal import SealRing
from tiny_harness.settings import Settings
from tiny_harness.store import KeptPush, PushStatus, Store, TaskRecord
from tiny_harness_engine.push_calls import DELIVER, Delivered

PAGE: Final = 50
"""Events of one activity at most."""
PAGE_S: Final = 20.0
"""How long an activity goes on to a next event; with the last one it stays under its `TIMEOUT`."""
TIMEOUT_S: Final = 15.0
"""For the whole of one notification: name, connection, request, status."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 600.0
FAILING_AFTER: Final = 3
DISABLED_AFTER: Final = 60
"""Attempts: nine hours and more with their pauses."""
GONE: Final = 410
"""A receiver's word for: never again."""
MEDIA_TYPE: Final = "application/a2a+json"

log = logging.getLogger(__name__)


class DeliverActivity:
    """`deliver`, bound to a store, the keys of secrets and a client."""

    def __init__(self, settings: Settings, store: Store, ring: SealRing, client: httpx.AsyncClient) -> None:
        self._allowed = settings.push.allow_hosts
        self._store = store
        self._ring = ring
        self._client = client

    @activity.defn(name=DELIVER)
    async def deliver(self, key: PushKey) -> Delivered:
        """Deliver what there is; each event that was taken is noted, so that a crash repeats one and loses none."""
        kept = await self._store.push(key)
        record = await self._store.task(key.task_id)
        if kept is None or record is None or kept.status == "disabled":
            return Delivered(is_over=True)
        if not _may_be_told(record, key):
            await self._store.delete_push(key)
            return Delivered(is_over=True)
        delivered = kept.delivered_seq
        events = await self._store.events(key.task_id, delivered, PAGE)
        until = time.monotonic() + PAGE_S
        for event in events:
            told = await self._tell(kept, event)
            if told is not None:
                return await self._failed(kept, delivered, told)
            delivered = event.seq
            await self._store.note_push(key, delivered, "ok", 0)
            if time.monotonic() > until:
                return Delivered(has_more=True)
        is_over = record.snapshot.state.is_terminal and delivered >= record.snapshot.head
        return Delivered(is_over=is_over, has_more=len(events) == PAGE)

    async def _tell(self, kept: KeptPush, event: Event) -> int | None:
        """Tell one event; `None` if it was taken, else the status of the refusal, 0 without one."""
        secret = open_secret(kept.secret, self._ring, kept.key)
        if secret is None:
            log.warning("no key opens the secret of %s", kept.key.workflow_id)
            return GONE
        try:
            async with asyncio.timeout(TIMEOUT_S):
                status = await self._post(kept.url, secret, event.payload.encode())
        except (Refused, TimeoutError, httpx.HTTPError, httpx.InvalidURL) as error:
            log.info("%s was not told #%s: %r", kept.key.workflow_id, event.seq, error)
            return 0
        return None if httpx.codes.is_success(status) else status

    async def _post(self, url: str, secret: PushSecret, body: bytes) -> int:
        """Send one; the status. The answer's body is left unread: it may be endless."""
        place = await find_place(url, self._allowed)
        headers = {**secret.headers, "Host": urlsplit(url).netloc, "Content-Type": MEDIA_TYPE}
        names = {"sni_hostname": place.host}
        target = _numeric(url, place)
        async with self._client.stream("POST", target, content=body, headers=headers, extensions=names) as answer:
            return answer.status_code

    async def _failed(self, kept: KeptPush, delivered: int, status: int) -> Delivered:
        # What was delivered just now began the count anew.
        failures = (kept.failures if delivered == kept.delivered_seq else 0) + 1
        stands: PushStatus = "failing" if failures >= FAILING_AFTER else "ok"
        if status == GONE or failures >= DISABLED_AFTER:
            stands = "disabled"
            log.warning("%s is told nothing more: status %s after %s attempts", kept.key.workflow_id, status, failures)
        await self._store.note_push(kept.key, delivered, stands, failures)
        return Delivered(is_over=stands == "disabled", pause_s=_pause_s(failures))


@asynccontextmanager
async def push_client() -> AsyncGenerator[httpx.AsyncClient]:
    """Open the client of all deliveries: no proxy, no redirect, and answers are not read for their words."""
    limits = httpx.Limits(max_connections=100, max_keepalive_connections=0)
    async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False, follow_redirects=False, limits=limits) as client:
        yield client


def _pause_s(failures: int) -> float:
    """Wait longer after each failure, and never for all receivers alike."""
    return min(FIRST_PAUSE_S * 2 ** (failures - 1), LONGEST_PAUSE_S) * random.uniform(0.75, 1.25)


def _may_be_told(record: TaskRecord, key: PushKey) -> bool:
    """Whether the configuration's maker still has a role that may have one."""
    role = access.strongest_role(record.snapshot.participants, key.participant_id)
    return role is not None and access.may(role, "be told by push")


def _numeric(url: str, place: Place) -> str:
    """Put the checked address where the name stands: nobody looks the name up again."""
    host = f"[{place.address}]" if ":" in place.address else place.address
    return urlunsplit(urlsplit(url)._replace(netloc=f"{host}:{place.port}"))
