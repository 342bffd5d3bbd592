"""Push configurations of participants: each sees their own, and no secret is ever read back (A2A 1.0 §3.1.7 on)."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from a2a import types as a2a
from a2a.utils.errors import PushNotificationNotSupportedError
from pydantic import ValidationError

from tiny_harness.contracts import Sender
from tiny_harness.errors import InvalidInput
from tiny_harness.ids import new_id
from tiny_harness.push import MAX_CONFIGS, MAX_ID_CHARS, PushKey, PushSecret
from tiny_harness.push_address import Refused, find_place
from tiny_harness.seal import SealRing
from tiny_harness.settings import Settings
from tiny_harness.store import KeptPush, Store
from tiny_harness_gateway import requests
from tiny_harness_gateway.conversations import Conversations, Sent

FIELD: Final = "taskPushNotificationConfig"
Config = a2a.TaskPushNotificationConfig


class PushConfigs:
    """The operations on push configurations. Without keys for secrets there are none."""

    def __init__(self, settings: Settings, store: Store, conversations: Conversations, ring: SealRing | None) -> None:
        self._allowed = settings.push.allow_hosts
        self._store = store
        self._conversations = conversations
        self._ring = ring

    @property
    def is_there(self) -> bool:
        """Whether there is push."""
        return self._ring is not None

    def must_be_there(self) -> SealRing:
        """Give the keys.

        Raises:
            PushNotificationNotSupportedError: There is no push here.
        """
        if self._ring is None:
            raise PushNotificationNotSupportedError
        return self._ring

    async def send(self, caller: Sender, request: a2a.SendMessageRequest) -> Sent:
        """Take a message, and with it the configuration that it may bring for its task.

        Raises:
            InvalidInput, PushNotificationNotSupportedError: The configuration is refused, and with it the message.
        """
        message = requests.message_json(request)
        if not request.configuration.HasField("task_push_notification_config"):
            return await self._conversations.send(caller, message)
        config = Config()
        config.CopyFrom(request.configuration.task_push_notification_config)
        # The same message again brings the same configuration: its receiver is told each thing once.
        config.id = config.id or sha256(request.message.message_id.encode()).hexdigest()[:32]
        secret = await self.checked(config)
        if request.message.task_id:
            await self._conversations.record(caller, request.message.task_id, "be told by push")
            held = {kept.key.config_id for kept in await self._store.pushes_of(request.message.task_id, caller.id)}
            if len(held | {config.id}) > MAX_CONFIGS:
                raise _too_many()
        sent = await self._conversations.send(caller, message)
        config.task_id = sent.task_id
        await self.keep(caller, config, secret, sent.receipt.seq)
        return sent

    async def create(self, caller: Sender, config: Config) -> Config:
        """Tell somebody of all that happens to a task from now on."""
        self.must_be_there()
        record = await self._conversations.record(caller, config.task_id, "be told by push")
        secret = await self.checked(config)
        return await self.keep(caller, config, secret, record.snapshot.head)

    async def checked(self, config: Config) -> PushSecret:
        """Check a configuration, and take its secrets out of it.

        Raises:
            InvalidInput: It leads where nothing may be sent, or is too long.
            PushNotificationNotSupportedError: There is no push here.
        """
        self.must_be_there()
        if len(config.id) > MAX_ID_CHARS:
            raise InvalidInput("invalid_params", f"{FIELD}.id", f"may have {MAX_ID_CHARS} characters")
        if not config.id.isprintable():
            raise InvalidInput("invalid_params", f"{FIELD}.id", "must be printable")
        try:
            await find_place(config.url, self._allowed)
            return PushSecret(
                token=_header(config.token),
                scheme=_header(config.authentication.scheme),
                credentials=_header(config.authentication.credentials),
            )
        except Refused as refused:
            raise InvalidInput("invalid_params", f"{FIELD}.url", str(refused)) from None
        except ValidationError:
            raise InvalidInput("invalid_params", f"{FIELD}.authentication", "is too long") from None

    async def keep(self, caller: Sender, config: Config, secret: PushSecret, after: int) -> Config:
        """Keep a checked configuration; a new one is told what happens after an event."""
        key = PushKey(task_id=config.task_id, participant_id=caller.id, config_id=config.id or new_id())
        sealed = secret.seal(self.must_be_there(), key)
        if not await self._store.save_push(key, config.url, sealed, after, MAX_CONFIGS):
            raise _too_many()
        return Config(task_id=key.task_id, id=key.config_id, url=config.url)

    async def get(self, caller: Sender, task_id: str, config_id: str) -> Config:
        """Show one of the caller's.

        Raises:
            InvalidInput: They have none of that id, whatever others have.
        """
        kept = await self._store.push(await self._key(caller, task_id, config_id))
        if kept is None:
            raise InvalidInput("invalid_params", "id", "there is no such configuration")
        return _shown(kept)

    async def all_of(self, caller: Sender, task_id: str) -> Sequence[Config]:
        """List the caller's on a task."""
        self.must_be_there()
        await self._conversations.record(caller, task_id)
        return [_shown(kept) for kept in await self._store.pushes_of(task_id, caller.id)]

    async def delete(self, caller: Sender, task_id: str, config_id: str) -> None:
        """Delete one of the caller's; one that is not there is deleted."""
        await self._store.delete_push(await self._key(caller, task_id, config_id))

    async def _key(self, caller: Sender, task_id: str, config_id: str) -> PushKey:
        self.must_be_there()
        await self._conversations.record(caller, task_id)
        return PushKey(task_id=task_id, participant_id=caller.id, config_id=config_id)


def _shown(kept: KeptPush) -> Config:
    return Config(task_id=kept.key.task_id, id=kept.key.config_id, url=kept.url)


def _header(value: str) -> str:
    """Take a value that goes into a header.

    Raises:
        InvalidInput: It cannot stand there.
    """
    if not value.isascii() or not value.isprintable():
        raise InvalidInput("invalid_params", FIELD, "token and authentication are printable ASCII")
    return value


def _too_many() -> InvalidInput:
    return InvalidInput("invalid_params", FIELD, f"a participant may have {MAX_CONFIGS} of them on a task")
