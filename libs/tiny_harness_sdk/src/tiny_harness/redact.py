"""Masks secrets in JSON documents: configured ones by value, anybody's by shape (DESIGN: security).

By shape only in logs, traces and what executors see, never in what is stored or sent: shapes can be wrong. Here they
rather leave a word alone than touch code, ids or prose. No pattern takes more than linear time: the text is hostile.
"""

import re
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeGuard
from urllib.parse import unquote, urlsplit

MASK: Final = ":masked:"
"""Only of characters that an id may have, so that a masked document still has its shape."""
MIN_SECRET_CHARS: Final = 6
"""Shorter values stand in too many words."""

_SECRET_VARIABLES: Final = frozenset({"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "TEMPORAL_API_KEY"})
_ADDRESSES: Final = frozenset({"TINY_HARNESS_STORE_URL", "TINY_HARNESS_REDIS_URL"})
"""Variables whose values hold a password, which is as much a secret alone."""
_OUR_SECRETS: Final = re.compile(r"TINY_HARNESS_(?:.*_)?(?:TOKEN|SECRET|KEYS?|PASSWORD)(?:_.*)?", re.ASCII)

_KEYS: Final = (
    "password",
    "passwd",
    "passphrase",
    "api_key",
    "apikey",
    "secret",
    "client_secret",
    "secret_key",
    "access_key",
    "private_key",
    "token",
    "access_token",
    "refresh_token",
    "auth_token",
    "authorization",
)
_SECRET_KEYS: Final = frozenset(_KEYS)
"""A field of one of these names holds a secret, whatever it looks like."""


class Redactor:
    """Masks the secrets of one process."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        usable = {secret for secret in secrets if len(secret) >= MIN_SECRET_CHARS}
        self._secrets = sorted(usable, key=lambda secret: (-len(secret), secret))  # a longer one may hold a shorter one

    def by_value(self, document: Any) -> Any:
        """Mask the configured secrets, wherever they stand in a document's strings and keys."""
        whole = "\n".join(_strings(document))
        return _mapped(document, self._values) if any(secret in whole for secret in self._secrets) else document

    def by_value_and_shape(self, document: Any) -> Any:
        """Mask the configured secrets, and whatever looks like one; a document without any is given back as it is."""
        whole = "\n".join((*_strings(document), ""))
        lowered = whole.lower()
        shapes = [shape for shape in _SHAPES if any(word in lowered for word in shape.words)]
        if not shapes and not any(secret in whole for secret in self._secrets):
            return document

        def mask(text: str) -> str:
            text = self._values(text)
            for shape in shapes if len(text) >= MIN_SECRET_CHARS else ():
                text = shape.pattern.sub(shape.replace, text)
            return text

        return _mapped(document, mask, is_secret_key=_is_secret_key)

    def _values(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return text


def configured_secrets(environ: Mapping[str, str], variables: Collection[str] = ()) -> tuple[str, ...]:
    """Collect the values of the environment variables that hold secrets; of a list, each value too.

    Args:
        environ: The environment.
        variables: Names of those that the configuration adds (`Settings.secret_variables`).
    """
    found: set[str] = set()
    for name, value in environ.items():
        if name in _SECRET_VARIABLES or name in variables or _OUR_SECRETS.fullmatch(name):
            found |= {value.strip(), *(part.strip() for part in value.split(","))}
        elif name in _ADDRESSES:
            found |= _passwords(value)
    return tuple(sorted(found - {""}))


def _passwords(address: str) -> set[str]:
    """Collect the password of an address, as it is written there and as it is meant."""
    try:
        password = urlsplit(address).password or ""
    except ValueError:
        return set()
    return {password, unquote(password)}


def _whole(_found: re.Match[str]) -> str:
    return MASK


def _random_key(found: re.Match[str]) -> str:
    """Mask `sk-…` unless it is a phrase with hyphens."""
    text = found[0]
    longest = max(len(part) for part in re.split("[-_]", text))
    is_random = sum(map(str.isdigit, text)) >= 2 and (longest >= 20 or any(map(str.isupper, text)))
    return MASK if is_random or longest >= 24 else text


def _credential(found: re.Match[str]) -> str:
    """Mask what stands behind `Bearer`, unless it is a word."""
    is_word = found[2].isalpha() and len(found[2]) < 30
    return found[0] if is_word else f"{found[1]}{MASK}"


def _in_url(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}@"


_PLACEHOLDER: Final = re.compile(r"\$[A-Z_][A-Z0-9_]*|\$?\{.*|<.*|\[.*|%\w*|\W*", re.ASCII | re.DOTALL)
_TYPES: Final = frozenset(
    {
        "none",
        "null",
        "true",
        "false",
        "undefined",
        "str",
        "string",
        "bytes",
        "required",
        "optional",
        "password",
        "token",
    }
)


def _assigned(found: re.Match[str]) -> str:
    """Mask an assigned value, unless it is code, a type or a placeholder."""
    is_password = "pass" in found["name"].lower()
    value = found["value"] if found["quote"] else found["value"].rstrip(")]}.")
    is_loose = not found["quote"] and _is_word(value, is_tight=is_password and found["before"] in ("=", ":"))
    is_number = value.isdigit() and not is_password
    is_plain = is_number or value.lower() in _TYPES or bool(_PLACEHOLDER.fullmatch(value))
    if is_plain or is_loose or len(value) < (1 if is_password else 4):
        return found[0]
    start, end = found.start("value") - found.start(), found.start("value") - found.start() + len(value)
    return found[0][:start] + MASK + found[0][end:]


def _is_word(value: str, *, is_tight: bool) -> bool:
    """Whether it is a word, or a name in code; `password=letters`, without blanks, is taken for a password."""
    if value.isalpha() and len(value) >= (MIN_SECRET_CHARS if is_tight else 24):
        return False
    return bool(re.fullmatch(r"[A-Za-z_][A-Za-z_.]*", value))


class _Shape(NamedTuple):
    """One way in which a secret looks."""

    words: tuple[str, ...]
    """One of these is in the lower-case text, or there is nothing to look for."""
    pattern: re.Pattern[str]
    replace: Callable[[re.Match[str]], str]


_BEHIND: Final = ("=", ":", " ", "\t", '"', "'", "\\", "\n")
"""What may stand behind the name of a secret; a line end: it is a field's name."""
_ASSIGNED_WORDS: Final = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "authorization",
    *(f"{word}{sign}" for word in ("key", "token") for sign in _BEHIND),
)

# Each pattern begins where it cannot begin again within what it has read, and gives nothing back (possessive, or
# bounded): that keeps it linear.
_SHAPES: Final = (
    _Shape(
        ("private key-----",),
        re.compile(
            r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----(?:[A-Za-z0-9+/=\s,:.\\]++|-(?!----))*+"
            r"(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----)?+"
        ),
        _whole,
    ),
    _Shape(("sk-",), re.compile(r"(?<![A-Za-z0-9_-])sk-[A-Za-z0-9_-]{16,}+"), _random_key),
    _Shape(("akia", "asia"), re.compile(r"(?<![A-Za-z0-9])A[KS]IA[0-9A-Z]{16}(?![A-Za-z0-9])"), _whole),
    _Shape(
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), re.compile(r"(?<![A-Za-z0-9_])gh[pousr]_[A-Za-z0-9]{20,}+"), _whole
    ),
    _Shape(("github_pat_",), re.compile(r"(?<![A-Za-z0-9_])github_pat_[A-Za-z0-9_]{20,}+"), _whole),
    _Shape(("xox", "xapp-"), re.compile(r"(?<![A-Za-z0-9_-])(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,}+"), _whole),
    _Shape(("aiza",), re.compile(r"(?<![A-Za-z0-9_-])AIza[0-9A-Za-z_-]{35}"), _whole),
    _Shape(
        ("eyj",),
        re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]{6,}+\.[A-Za-z0-9_-]*+"),
        _whole,
    ),
    _Shape(
        ("bearer", "basic"), re.compile(r"(?i)\b((?:bearer|basic)[ \t]{1,8})([A-Za-z0-9._~+/=-]{8,}+)"), _credential
    ),
    _Shape(("://",), re.compile(r"(://[^\s/?#:@]{0,200}:)[^\s/?#]{1,500}@"), _in_url),
    _Shape(
        _ASSIGNED_WORDS,
        re.compile(
            r"(?i)(?P<name>password|passwd|passphrase|api[_-]?key|secret[_-]?key|access[_-]?key|secret|token)"
            r"\\?[\"']?(?P<before>[ \t]{0,3}[=:][ \t]{0,3})(?![A-Za-z_][\w.]{0,60}[(\[])(?P<quote>\\?[\"']?)"
            r"(?P<value>(?<=\")[^\"\\\n]{1,300}+|(?<=')[^'\\\n]{1,300}+|(?:[^\s\"'&,;\\]|\\(?![\"'])){1,500}+)"
        ),
        _assigned,
    ),
)


def _is_secret_key(key: str) -> bool:
    return key.lower().replace("-", "_") in _SECRET_KEYS


def _is_nothing(_key: str) -> bool:
    return False


def _strings(document: Any) -> Generator[str]:
    """Give all strings of a document, keys included."""
    if isinstance(document, str):
        yield document
    elif _is_object(document):
        for key, value in document.items():
            yield str(key)
            yield from _strings(value)
    elif _is_list(document):
        for value in document:
            yield from _strings(value)


def _mapped(document: Any, mask: Callable[[str], str], *, is_secret_key: Callable[[str], bool] = _is_nothing) -> Any:
    """Copy a document with its strings masked."""
    if isinstance(document, str):
        return mask(document)
    if _is_object(document):
        return {
            (mask(key) if isinstance(key, str) else key): (
                MASK
                if isinstance(value, str) and value and isinstance(key, str) and is_secret_key(key)
                else _mapped(value, mask, is_secret_key=is_secret_key)
            )
            for key, value in document.items()
        }
    if _is_list(document):
        return [_mapped(value, mask, is_secret_key=is_secret_key) for value in document]
    return document


def _is_object(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def _is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)
