"""A small service that keeps the whole remote contract, but for the flaws that a test gives it."""

import asyncio
import itertools
import json
from collections.abc import Callable, Collection
from typing import Any, Final

from tests.integration.remote_hooks.contexts import secrets
from tests.integration.remote_hooks.server import Request, answer
from tiny_harness.errors import SignatureRefused
from tiny_harness.hooks.conformance.contexts import ABORT_WORDS
from tiny_harness.hooks.signature import Verifier

MAX_BYTES: Final = 1 << 20
KEY_ID: Final = "test"

HEALTH: Final = {
    "name": "small",
    "points": ["request.received.pre", "task.created.pre", "command.invoked.in"],
    "commands": [{"name": "deploy", "description": "Deploy the current build", "argument_hint": "<env>"}],
}

FLAWS: Final[dict[str, set[str]]] = {
    "takes any signature": {"bad-signature", "unknown-key", "old-signature", "replay"},
    "takes unsigned calls": {"unsigned"},
    "takes a repeated signature": {"replay"},
    "runs batches": {"batch"},
    "takes oversize bodies": {"oversize"},
    "replaces a forbidden field": {"patch"},
    "replaces by a wrong type": {"patch"},
    "leaks an exception's text": {"failure"},
    "hangs": {"deadline"},
    "runs twice for one delivery": {"once"},
    "refuses without a reason": {"abort"},
    "refuses where nothing can be refused": {"abort"},
    "takes any media type": {"content-type"},
    "takes GET": {"get"},
    "answers methods it does not have": {"unknown-method"},
    "answers commands it does not have": {"unknown-command"},
    "takes any params": {"invalid-params"},
    "answers nonsense with nonsense": {"malformed"},
    "takes other versions": {"invalid-request"},
    "names a point that is none": {"health"},
    "answers 201": {"call"},
}
"""Each flaw, with the rules that it breaks: exactly these."""


class Refused(Exception):
    """A status instead of an answer."""

    def __init__(self, status: str, message: str = "no") -> None:
        super().__init__(message)
        self.status = status
        self.document = {"error": {"code": int(status[:3]), "status": "REFUSED", "message": message}}


class Broken(Exception):
    """A JSON-RPC error."""

    def __init__(self, code: int, message: str = "no", data: Any = None) -> None:
        super().__init__(message)
        self.document = {"code": code, "message": message, "data": data}


class SmallService:
    """Answers requests of `listening`."""

    def __init__(self, *flaws: str) -> None:
        assert FLAWS.keys() >= set(flaws)
        self._flaws: Collection[str] = flaws
        self._verifier = Verifier(secrets)
        self._answered: dict[str, Any] = {}
        self._numbers = itertools.count()
        self._executors: dict[str, Callable[[dict[str, Any]], Any]] = {
            "request.received.pre": self._received,
            "task.created.pre": self._created,
            "command.invoked.in": self._command,
        }

    async def __call__(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        try:
            self._guard(request)
        except Refused as refused:
            await answer(writer, refused.document, refused.status)
            return
        document = self._answer(request)
        if document is None:
            await asyncio.Event().wait()
        is_call = b'"context"' in request.body and "result" in document
        status = "201 Created" if self._has("answers 201") and is_call else "200 OK"
        await answer(writer, document, status)

    def _has(self, flaw: str) -> bool:
        return flaw in self._flaws

    def _guard(self, request: Request) -> None:
        if request.method != "POST" and not self._has("takes GET"):
            raise Refused("405 Method Not Allowed")
        if len(request.body) > MAX_BYTES and not self._has("takes oversize bodies"):
            raise Refused("413 Content Too Large")
        if request.headers.get("content-type") != "application/json" and not self._has("takes any media type"):
            raise Refused("415 Unsupported Media Type")
        is_signed = "x-tiny-harness-signature" in request.headers
        if not is_signed and self._has("takes unsigned calls"):
            return
        if is_signed and self._has("takes any signature"):
            return
        verifier = Verifier(secrets) if self._has("takes a repeated signature") else self._verifier
        try:
            verifier.check(request.method, request.path, request.headers, request.body)
        except SignatureRefused as refusal:
            raise Refused("401 Unauthorized", refusal.reason) from refusal

    def _answer(self, request: Request) -> Any:
        try:
            call = json.loads(request.body)
        except ValueError:
            return {"jsonrpc": "2.0", "id": None, "error": Broken(-32700).document} if self._is_sound() else "nonsense"
        if isinstance(call, list) and self._has("runs batches"):
            return [self._call(each) for each in call]
        return self._call(call)

    def _is_sound(self) -> bool:
        return not self._has("answers nonsense with nonsense")

    def _call(self, call: Any) -> Any:
        if not isinstance(call, dict) or (call.get("jsonrpc") != "2.0" and not self._has("takes other versions")):
            return {"jsonrpc": "2.0", "id": None, "error": Broken(-32600).document}
        try:
            result = self._once(call)
        except Broken as broken:
            return {"jsonrpc": "2.0", "id": call["id"], "error": broken.document}
        if result is ...:
            return None
        return {"jsonrpc": "2.0", "id": call["id"], "result": result}

    def _once(self, call: dict[str, Any]) -> Any:
        known = self._answered.get(call["id"])
        if known is None or self._has("runs twice for one delivery"):
            known = self._answered[call["id"]] = self._run(call["method"], call.get("params", {}))
        return known

    def _run(self, method: str, params: dict[str, Any]) -> Any:
        if method == "hooks.health":
            points = [*HEALTH["points"], *(["no.such.point"] if self._has("names a point that is none") else [])]
            return {**HEALTH, "points": points}
        executor = self._executors.get(method)
        if executor is None:
            if self._has("answers methods it does not have"):
                return {}
            raise Broken(-32601)
        if not isinstance(params.get("context"), dict):
            if self._has("takes any params"):
                return {}
            raise Broken(-32602)
        return executor(params["context"])

    def _received(self, context: dict[str, Any]) -> Any:
        if context["text"] == ABORT_WORDS:
            raise Broken(-32010, "because", {} if self._has("refuses without a reason") else {"reason": "because"})
        if self._has("replaces a forbidden field"):
            return {"sender": {"id": "mallory"}}
        if self._has("replaces by a wrong type"):
            return {"text": 7}
        return {"text": f"{context['text']} {next(self._numbers)}"}

    def _created(self, _context: dict[str, Any]) -> Any:
        words = "KeyError: 'secret'" if self._has("leaks an exception's text") else "the executor failed"
        raise Broken(-32603, words, {"correlation_id": "small-1"})

    def _command(self, context: dict[str, Any]) -> Any:
        if context["command"] != "deploy" and not self._has("answers commands it does not have"):
            raise Broken(-32601)
        if self._has("refuses where nothing can be refused"):
            raise Broken(-32010, "because", {"reason": "because"})
        if self._has("hangs"):
            return ...
        return {"result": {"reply": f"deployed {next(self._numbers)}"}}
