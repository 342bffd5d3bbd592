"""Reading the configuration: every fault names file and key."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from tiny_harness.config_file import default_config, explain, require_model_key
from tiny_harness.errors import ConfigError
from tiny_harness.settings import Settings


def load(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "c.toml"
    path.write_text(text)
    return Settings.load(path)


def test_an_empty_file_means_the_defaults(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Settings()


@pytest.mark.parametrize(
    ("text", "key", "words"),
    [
        ("[server]\nbnid = 'x'", "server.bnid", "did you mean bind"),
        ("[sever]\n", "sever", "did you mean server"),
        ("[temporal.embedded]\nprot = 1", "temporal.embedded.prot", "did you mean port"),
        ("[server]\nmax_streams = 'many'", "server.max_streams", "integer"),
        ("[server]\nmax_streams = -1", "server.max_streams", "greater"),
        ("[server]\nbind = 'nowhere'", "server.bind", "HOST:PORT"),
        ("[model]\nprovider = 'oracle'", "model.provider", "openai"),
        ("[auth]\nmode = 'none'\n[server]\nbind = '0.0.0.0:80'", "server.bind", "loopback"),
        ("[openai]\neffort = 'maximum'", "openai.effort", "low"),
        ("[openai]\nmodels = []", "openai.models", "must hold the default model"),
        ("[openai]\nmodel = 'a'\nmodels = ['b']", "openai.models", "must hold the default model"),
        ("[anthropic]\nmodels = []", "anthropic.models", "must hold the default model"),
        ("[anthropic]\neffort = 'none'", "anthropic.effort", "low"),
        ("plugins = 'one'", "plugins", "tuple"),
        ("[hooks]\ndeadline = 0", "hooks.deadline", "greater"),
        ("[tasks]\nmax_children = 0", "tasks.max_children", "greater"),
    ],
)
def test_a_bad_key_or_value_names_file_and_key(tmp_path: Path, text: str, key: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert caught.value.file == str(tmp_path / "c.toml")
    assert caught.value.key == key
    assert words in caught.value.reason


def test_all_wrong_keys_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=re.escape("store.nope")):
        load(tmp_path, "[server]\nbad = 1\n[store]\nnope = 2")


def test_invalid_toml_names_the_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        load(tmp_path, "[server]\nbind = oops\n")


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "c.toml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        Settings.load(path)
    assert caught.value.file == str(path)


def test_a_value_is_never_shown_in_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, "[server]\nmax_streams = 'hunter2'")
    assert "hunter2" not in str(caught.value)


def test_a_key_is_explained() -> None:
    told = explain(Settings(), "server.max_streams")
    assert (told["value"], told["default"]) == (50, 50)
    assert told["about"]
    assert "bind" in explain(Settings(), "server")["section"]


def test_every_key_says_what_it_is_for() -> None:
    for name, field in Settings.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            keys = [f"{name}.{key}" for key in inner.model_fields]
        else:
            keys = [name]
        for key in keys:
            assert explain(Settings(), key)["about"], key


def test_a_key_above_all_sections_is_explained(tmp_path: Path) -> None:
    told = explain(load(tmp_path, "plugins = ['one', 'two']"), "plugins")
    assert (told["value"], told["default"], told["type"]) == (["one", "two"], [], "list of path")


def test_a_list_of_models_that_holds_the_default_is_what_may_be_chosen(tmp_path: Path) -> None:
    assert load(tmp_path, "[openai]\nmodel = 'a'\nmodels = ['b', 'a']").openai.selectable == ("b", "a")
    assert load(tmp_path, "[openai]\nmodel = 'a'").openai.selectable == ("a",)


def test_the_default_file_is_valid_also_with_its_examples(tmp_path: Path) -> None:
    text = default_config(tmp_path)
    load(tmp_path, text)
    examples = re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE)
    settings = load(tmp_path, examples)
    assert settings.plugins == (Path("/path/to/plugin"),)
    assert (settings.openai.effort, len(settings.openai.selectable)) == ("medium", 2)


def test_agents_are_explained_one_by_one(tmp_path: Path) -> None:
    settings = load(tmp_path, "[agents.desk]\nurl = 'https://desk.example'\ntimeout = 5.0")
    assert explain(settings, "agents")["section"] == ["desk"]
    assert "token_env" in explain(settings, "agents.desk")["section"]
    assert explain(settings, "agents.desk.timeout")["value"] == 5.0
    for unknown in ("agents.nobody", "agents.nobody.url", "agents.desk.nothing"):
        with pytest.raises(ConfigError):
            explain(settings, unknown)


@pytest.mark.parametrize(
    "section",
    [
        "[agents.self]\nurl = 'https://x.example'",
        "[agents.x]",
        "[agents.x]\nurl = 'http://x.example'",
        "[agents.x]\nurl = 'https://user:secret@x.example'",
        "[agents.x]\nurl = 'https://x.example/?key=1'",
        "[agents.x]\nurl = 'https://x.example'\ntoken = 'no secret in a file'",
        "[agents.'a b']\nurl = 'https://x.example'",
    ],
)
def test_an_agent_that_is_not_safe_to_call_is_refused(tmp_path: Path, section: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, section)
    assert caught.value.key.startswith("agents")


def test_an_unknown_key_to_explain_suggests_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean bind"):
        explain(Settings(), "server.bnd")


def test_a_missing_key_names_the_variable_and_the_keyless_ways() -> None:
    with pytest.raises(ConfigError) as caught:
        require_model_key(Settings(), {}, "the-file")
    for words in ("OPENAI_API_KEY", "tiny-harness demo", "base_url", "the-file"):
        assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        ("", {"OPENAI_API_KEY": "k"}),
        ("[openai]\nbase_url = 'http://127.0.0.1:1'", {}),
        ("[model]\nprovider = 'scripted'", {}),
    ],
)
def test_a_key_is_wanted_only_where_one_is_needed(tmp_path: Path, text: str, environ: dict[str, str]) -> None:
    require_model_key(load(tmp_path, text), environ)


def test_a_relative_path_is_relative_to_the_working_directory(tmp_path: Path) -> None:
    settings = load(tmp_path, "[store]\nsqlite_path = 'here.db'")
    assert settings.store.sqlite_path == Path("here.db")
    assert settings.temporal_database == Path("temporal.db")
