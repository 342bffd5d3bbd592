"""Secrets are masked; words, ids and code are not; and no text takes long."""

import subprocess
import sys

import pytest

from tiny_harness.redact import MASK, Redactor, configured_secrets

SECRETS = ("configured-value-1", "configured-value-12", "short", "with space", 'q"uote\\d')
REDACTOR = Redactor(SECRETS)

SHAPES = {
    "openai": "sk-proj-abcDEF1234567890abcDEF",
    "openai, old": "sk-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789AbCdEfGhIjKl",
    "anthropic": "sk-ant-api03-AbCdEf12_3456-7890abcdEFGH",
    "hexadecimal": "sk-0123456789abcdef0123456789abcdef",
    "aws": "AKIAIOSFODNN7EXAMPLE",
    "aws, temporary": "ASIAIOSFODNN7EXAMPLE",
    "github": "ghp_0123456789abcdefABCDEF0123456789abcd",
    "github, fine": "github_pat_11ABCDEFG0abcdefghijk_lmnopqrs",
    "slack": "xoxb-1234567890-abcdefghij",
    "google": "AIzaSyA0123456789abcdefghijklmnopqrstuv",
    "jwt": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_def-123",
    "pem": "-----BEGIN RSA PRIVATE KEY-----\nMIIEabc+/=\n-----END RSA PRIVATE KEY-----",
    "pem, cut": "-----BEGIN PRIVATE KEY-----\nMIIEabc+/=",
}

PARTS = [
    ("Authorization: Bearer abc123def456", "Authorization: Bearer :masked:"),
    ("basic dXNlcjpwYXNzd29yZDE=", "basic :masked:"),
    ("postgres://bob:pa@ss:w0rd@host/db", "postgres://bob::masked:@host/db"),
    ("redis://:hunter@host", "redis://::masked:@host"),
    ("password=hunter2", "password=:masked:"),
    ("password=swordfish", "password=:masked:"),
    ("password = hunter2", "password = :masked:"),
    ("DB_PASSWORD: hunter2", "DB_PASSWORD: :masked:"),
    ("API_KEY=abcd1234", "API_KEY=:masked:"),
    ("export X_SECRET='top hat'; ls", "export X_SECRET=':masked:'; ls"),
    ('"password": "correct horse battery", "a": 1', '"password": ":masked:", "a": 1'),
    ('{\\"token\\": \\"abc123\\"}', '{\\"token\\": \\":masked:\\"}'),
    ("https://x.org/?token=abc123&page=2", "https://x.org/?token=:masked:&page=2"),
    ("call(token=abc123)", "call(token=:masked:)"),
    ("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key = :masked:"),
]

CLEAN = [
    "550e8400-e29b-41d4-a716-446655440000",
    "task t1 of context c1 at 2026-08-07T19:23:35Z, sha 2b6e3bf662830391e77bbb1751e3ca0d1be50872",
    "risk-averse task-force desk-42-a-very-long-name-with-digits-1234",
    "sk-learn-2-compatible-estimators-and-more",
    "The bearer authentication scheme, and bearer certificates; basic understanding",
    "The password: swordfish was wrong. My password is nothing. token: string",
    "input_tokens: 1500, max_tokens=4096, token: 12",
    "http://127.0.0.1:8080/a@b and http://[::1]:80/x ftp://host:21",
    "def login(password: str, token=None, api_key=get_key(), secret=os.environ['S']): self.password = password",
    "password=$PASSWORD token=${TOKEN} secret: <your secret> api_key={key}",
    "password: required, token: optional",
    "asia akia AKIA eyJ sk- ghp_ xoxb",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
    "ann@example.org ::masked:: a/b:c@d",
    "",
]

HOSTILE = [
    *("sk-", "sk-a1B", "eyJ", "eyJaaaaaaa.", "eyJaaaaaaa-", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----"),
    *(
        "-----BEGIN PRIVATE KEY-----\n-",
        "bearer ",
        "bearer\t ",
        "basic a",
        "://",
        "://a:",
        "://a:b",
        "token=",
        "token='",
    ),
    *("token=a(", "password", "password ", "password: ", 'password="', "password=\\", 'key=\\"', "secret:secret:a."),
    *("ghp_", "AKIA", "xoxb-", "github_pat_", "a", "A1", " ", "-", "=", ":", "a.b.c.", "\u202e", "\x00"),
    "://" + "a" * 200 + ":" + "b" * 500 + " ",
    "secret=" + "a" * 400 + "(",
]


@pytest.mark.parametrize("secret", SHAPES.values(), ids=SHAPES)
def test_what_looks_like_a_secret_is_masked_within_its_sentence(secret: str) -> None:
    assert REDACTOR.by_value_and_shape({"t": f"Use {secret}"}) == {"t": f"Use {MASK}"}
    assert REDACTOR.by_value_and_shape([f'"{secret}"']) == [f'"{MASK}"']


@pytest.mark.parametrize(("text", "masked"), PARTS)
def test_only_the_secret_part_is_masked(text: str, masked: str) -> None:
    assert REDACTOR.by_value_and_shape(text) == masked


@pytest.mark.parametrize("text", CLEAN)
def test_words_ids_and_code_stay(text: str) -> None:
    document = {"text": text, "list": [text]}
    assert REDACTOR.by_value_and_shape(document) == document


@pytest.mark.parametrize("text", [*SHAPES.values(), *(text for text, _ in PARTS), *CLEAN])
def test_masking_twice_masks_once(text: str) -> None:
    once = REDACTOR.by_value_and_shape({"t": text})
    assert REDACTOR.by_value_and_shape(once) == once


def test_a_field_named_as_a_secret_is_one_whatever_it_holds() -> None:
    document = {"password": "x", "Api-Key": "y", "client_secret": "z", "token": 5, "tokens": "t", "authorization": ""}
    assert REDACTOR.by_value_and_shape(document) == {
        **document,
        "password": MASK,
        "Api-Key": MASK,
        "client_secret": MASK,
    }


@pytest.mark.parametrize("method", ["by_value", "by_value_and_shape"])
def test_configured_secrets_are_masked_wherever_they_stand(method: str) -> None:
    document = {
        "a": ["xconfigured-value-1x", {"configured-value-1": 1}],
        "longest": "configured-value-12",
        "odd": ('a q"uote\\d!', "with space"),
        "n": 1,
        "none": None,
        "yes": True,
    }
    assert getattr(REDACTOR, method)(document) == {
        "a": [f"x{MASK}x", {MASK: 1}],
        "longest": MASK,
        "odd": [f"a {MASK}!", MASK],
        "n": 1,
        "none": None,
        "yes": True,
    }


def test_a_value_that_is_too_short_is_no_secret() -> None:
    assert REDACTOR.by_value_and_shape("a short word") == "a short word"


def test_by_value_leaves_shapes_alone() -> None:
    document = {"t": SHAPES["github"], "password": "hunter2"}
    assert REDACTOR.by_value(document) == document


def test_a_clean_document_is_given_back_as_it_is() -> None:
    document = {"task": {"usage": {"input_tokens": 5}}, "text": "hello", "people": [{"id": "ann"}]}
    assert REDACTOR.by_value(document) is document
    assert REDACTOR.by_value_and_shape(document) is document


def test_a_document_keeps_its_own_strings() -> None:
    document = {"t": SHAPES["aws"]}
    REDACTOR.by_value_and_shape(document)
    assert document == {"t": SHAPES["aws"]}


def test_hostile_text_takes_no_time_that_grows_with_its_square() -> None:
    # In a process of its own, which can be ended. A pattern with a quadratic tail takes minutes for one of these.
    script = (
        "import sys; from tiny_harness.redact import Redactor\n"
        "redactor = Redactor(['configured-value'])\n"
        f"for piece in {HOSTILE!r}:\n"
        "    for tail in ('', '!', '@', '\"', '.'):\n"
        "        redactor.by_value_and_shape({'t': (piece * (300_000 // len(piece)))[:300_000] + tail})\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


def test_the_secrets_of_the_environment_are_collected() -> None:
    environ = {
        "OPENAI_API_KEY": "o-key",
        "ANTHROPIC_API_KEY": " a-key ",
        "TEMPORAL_API_KEY": "",
        "TINY_HARNESS_TOKEN": "t-oken",
        "TINY_HARNESS_ADMIN_TOKEN": "adm-in",
        "TINY_HARNESS_HOOK_SECRET_DEPLOYS": "new-one, old-one",
        "TINY_HARNESS_SEAL_KEYS": "k1,k2",
        "TINY_HARNESS_SOAK": "1",
        "TINY_HARNESS_TOKENS_PER_MINUTE": "100",
        "HOME": "/home/ann",
        "OPENAI_BASE_URL": "http://127.0.0.1",
        "TINY_HARNESS_STORE_URL": "postgresql://ann:p%40ss@db/harness",
        "TINY_HARNESS_REDIS_URL": "redis://[",
    }
    assert set(configured_secrets(environ)) == {
        *("o-key", "a-key", "t-oken", "adm-in", "k1", "k2", "k1,k2", "new-one", "old-one", "new-one, old-one"),
        *("p%40ss", "p@ss"),
    }
