"""Scripts are read strictly."""

import json
from pathlib import Path

import pytest

from tiny_harness.errors import ConfigError
from tiny_harness_engine.models.script import DEMO, read_script


def _refusal(tmp_path: Path, text: str, name: str = "script.toml") -> ConfigError:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_script(path)
    assert refused.value.file == str(path)
    return refused.value


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('rule = 1\n[[rules]]\nreply = "x"', "rule"),
        ('[[rules]]\nreply = "x"\n[[rules]]\nreply = "x"\nwhen.texts = "y"', "rules.1.when.texts"),
        ('[[rules]]\nreply = "x"\nwhen.text = "("', "rules.0.when.text"),
        ('[[rules]]\nreply = "x"\nwhen.turn = "first"', "rules.0.when.turn"),
        ('[[rules]]\nreply = "x"\nfail = { reason = "r", time = 1 }', "rules.0.fail.time"),
        ('[[rules]]\nreply = "x"\ndelay_s = -1', "rules.0.delay_s"),
        ('[[rules]]\nreply = "x"\nwhen.result.tool = "t"', "rules.0.when.result.tool"),
        ('[[rules]]\nreply = "x"\nusage.tokens = 1', "rules.0.usage.tokens"),
        ("rules = []", "rules"),
        ("[[rules]]\nwhen.turn = 1", "rules.0"),
        ('[[rules]]\nfail = { reason = "r", times = 1 }', "rules.0"),
    ],
)
def test_what_a_script_does_not_know_is_refused_by_name(tmp_path: Path, text: str, key: str) -> None:
    assert _refusal(tmp_path, text).key == key


@pytest.mark.parametrize(("text", "name"), [("[[rules", "a.toml"), ("{", "a.json"), ("[]", "b.json")])
def test_another_format_is_refused(tmp_path: Path, text: str, name: str) -> None:
    _refusal(tmp_path, text, name)


def test_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "script.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError):
        read_script(path)


def test_a_missing_script_is_refused_with_the_key_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read_script(tmp_path / "none.toml")
    assert refused.value.key == "scripted.script"


def test_json_and_toml_say_the_same(tmp_path: Path) -> None:
    toml, as_json = tmp_path / "a.toml", tmp_path / "a.json"
    toml.write_text('[[rules]]\nreply = "x"\nwhen.text = "y"\n[[rules.tool_calls]]\nname = "t"\narguments.a = [1]')
    rule = {"reply": "x", "when": {"text": "y"}, "tool_calls": [{"name": "t", "arguments": {"a": [1]}}]}
    as_json.write_text(json.dumps({"rules": [rule]}))
    assert read_script(toml) == read_script(as_json)


def test_the_demos_last_rule_always_fits() -> None:
    last = read_script(DEMO).rules[-1]
    assert last.remember is None
    assert not last.when.model_dump(exclude_none=True)
