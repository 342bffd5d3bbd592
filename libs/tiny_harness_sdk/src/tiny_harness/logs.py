"""Logs: one JSON object a line, to a file of ours or to standard error."""

import json
import logging
import os
import sys
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import TextIO

from tiny_harness.errors import ConfigError
from tiny_harness.redact import Redactor, configured_secrets
from tiny_harness.settings import ObservabilitySettings


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, its secrets masked: configured ones, and whatever looks like one."""

    def __init__(self, environ: Mapping[str, str] = os.environ, variables: Collection[str] = ()) -> None:
        super().__init__()
        self._mask = Redactor(configured_secrets(environ, variables)).by_value_and_shape

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(self._mask(line), ensure_ascii=False, default=str)


def configure_logs(settings: ObservabilitySettings, *, is_service: bool, variables: Collection[str] = ()) -> None:
    """Send all logs where the settings say.

    Args:
        settings: File and level.
        is_service: Whether standard error is a log when no file is named; a terminal program keeps quiet then.
        variables: Environment variables that hold secrets beside ours (`Settings.secret_variables`).

    Raises:
        ConfigError: The file cannot be opened.
    """
    root = logging.getLogger()
    fresh = _handler(settings, is_service=is_service, variables=variables)
    for old in root.handlers[:]:
        root.removeHandler(old)
        if isinstance(old, _LogFile):
            old.close()
    root.addHandler(fresh)
    root.setLevel(settings.log_level.upper())
    # What every start and every statement says, and no operator wants at "info".
    for name in ("alembic", "httpx", "httpx2", "mcp", "uvicorn.error", "temporalio.worker"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


class _LogFile(logging.StreamHandler[TextIO]):
    """Writes to a file that it owns."""

    def close(self) -> None:
        super().close()
        self.stream.close()


def _handler(settings: ObservabilitySettings, *, is_service: bool, variables: Collection[str]) -> logging.Handler:
    handler: logging.Handler
    if settings.log_file is None:
        handler = logging.StreamHandler(sys.stderr) if is_service else logging.NullHandler()
    else:
        try:
            settings.log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            handler = _LogFile(os.fdopen(os.open(settings.log_file, flags, 0o600), "a", encoding="utf-8"))
        except OSError as error:
            reason = f"cannot be opened ({error.strerror})"
            raise ConfigError(reason, file=str(settings.log_file), key="o11y.log_file") from error
    handler.setFormatter(JsonFormatter(variables=variables))
    return handler
