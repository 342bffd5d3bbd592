"""The model step: read the conversation, ask the model, record its answer. One activity."""

import asyncio
import logging
from typing import Final

from temporalio import activity

from tiny_harness.bus import Bus
from tiny_harness.errors import ModelError, Unavailable
from tiny_harness.settings import Settings
from tiny_harness.store import Store
from tiny_harness_engine.activities.beat import beating
from tiny_harness_engine.activities.deltas import DeltaSender
from tiny_harness_engine.calls import STEP, StepAnswer, StepRequest
from tiny_harness_engine.core.transcript import read_transcript
from tiny_harness_engine.models import ModelProvider, ModelRequest
from tiny_harness_engine.records import StepRecord, reply_id

MAX_EVENTS: Final = 400
"""Events that the window is made of at most; keeps a step's cost independent of a conversation's age."""

RECORD_ATTEMPTS: Final = 60
RECORD_PAUSE_S: Final = 2.0

log = logging.getLogger(__name__)


class StepActivity:
    """`step`, bound to a store, a bus and a model."""

    def __init__(self, settings: Settings, store: Store, bus: Bus, model: ModelProvider) -> None:
        self._settings = settings
        self._store = store
        self._bus = bus
        self._model = model

    @activity.defn(name=STEP)
    async def step(self, request: StepRequest) -> StepAnswer:
        """Make sure that the step's answer is in the store; a recorded one is not asked for again."""
        async with beating():
            if await self._store.step(request.task_id, request.turn, request.step) is not None:
                return StepAnswer()
            try:
                record = await self._ask(request)
            except ModelError as error:
                return StepAnswer(failure=str(error), is_transient=error.transient)
            await self._record(request, record)
            return StepAnswer()

    async def _record(self, request: StepRequest, record: StepRecord) -> None:
        """Keep an answer that was paid for, also if the store needs a while to take it."""
        text = record.model_dump_json()
        for _ in range(RECORD_ATTEMPTS - 1):
            try:
                await self._store.save_step(request.task_id, request.turn, request.step, text)
            except Unavailable as error:
                log.warning("an answer cannot be recorded yet: %s", error)
                await asyncio.sleep(RECORD_PAUSE_S)
            else:
                return
        await self._store.save_step(request.task_id, request.turn, request.step, text)

    async def _ask(self, request: StepRequest) -> StepRecord:
        events = await self._store.words(request.task_id, MAX_EVENTS)
        reading = [message.message_id for message in request.reading]
        messages = read_transcript(events, reading, self._settings.openai.context_window_tokens)
        deltas = DeltaSender(self._bus, request)
        asked = ModelRequest(request.turn, request.step, request.attempt, messages, self._settings.openai.effort)
        try:
            reply = await self._model.reply(asked, deltas.add)
        finally:
            deltas.close()
        if not reply.text.strip() and reply.tool_calls:
            raise ModelError(f"it asked for the tool {reply.tool_calls[0].name!r}, and there are no tools yet")
        if not reply.text.strip():
            raise ModelError("it answered without a word", transient=True)
        return StepRecord(
            message_id=reply_id(request.task_id, request.turn, request.step),
            text=reply.text,
            input_tokens=reply.usage.input_tokens,
            output_tokens=reply.usage.output_tokens,
        )
