"""Skills: how plugins bring them, and what a model gets to read of them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tiny_harness.errors import RegistryError
from tiny_harness.plugins import Plugin, PluginReport, load_plugin, resolve
from tiny_harness.plugins.files import MAX_TEXT_BYTES
from tiny_harness.plugins.manifest import SCHEMA
from tiny_harness.plugins.skills import MAX_BODY_CHARS, MAX_LISTED_FILES, MAX_SKILLS, Skill
from tiny_harness_engine.skills import SkillLibrary
from tiny_harness_engine.skills.library import MAX_FILE_CHARS

Make = Callable[..., Path]
WHOLE = """---
name: refunds
description: >
  How refunds are made.
  Use it when money goes back.
license: MIT
compatibility: Needs the orders server
metadata:
  author: example
  version: 1.0
allowed-tools: orders.refund orders.read
---

# Refunds

Ask first.
"""


def skill_text(name: str = "refunds", body: str = "Do it.", head: str = "") -> str:
    return f"---\nname: {name}\ndescription: About {name}\n{head}---\n{body}\n"


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Make a plugin's folder with files by their path."""

    def make_folder(files: dict[str, str | bytes], folder: str = "plugin") -> Path:
        root = tmp_path / folder
        manifest = f'{{"$schema": "{SCHEMA}", "name": "{folder}"}}'
        for name, content in {"plugin.json": manifest, **files}.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return root

    return make_folder


def loaded(path: Path) -> tuple[Plugin, PluginReport]:
    plugin, report = load_plugin(path)
    assert plugin is not None, report.reason
    return plugin, report


def why_skipped(path: Path, name: str = "refunds") -> str:
    plugin, report = loaded(path)
    assert not plugin.skills
    [part] = [part for part in report.components if part.kind == "skill"]
    assert (part.name, part.state) == (name, "skipped")
    return part.reason


def test_a_whole_skill_is_read(make: Make) -> None:
    files = {
        "skills/refunds/SKILL.md": WHOLE,
        "skills/refunds/references/fees.md": "fees",
        "skills/refunds/.hidden": "x",
        "skills/refunds/__pycache__/x.pyc": "x",
    }
    plugin, report = loaded(make(files))
    [skill] = plugin.skills
    assert skill.name == "refunds"
    assert skill.description == "How refunds are made. Use it when money goes back."
    assert skill.body == "# Refunds\n\nAsk first."
    assert (skill.license, skill.compatibility) == ("MIT", "Needs the orders server")
    assert skill.metadata == {"author": "example", "version": "1.0"}
    assert skill.allowed_tools == ("orders.refund", "orders.read")
    assert skill.files == ("references/fees.md",)
    assert [(part.kind, part.name, part.state) for part in report.components] == [("skill", "refunds", "loaded")]


def test_windows_line_ends_and_a_byte_order_mark_are_read(make: Make) -> None:
    text = "\ufeff" + skill_text(body="one\ntwo").replace("\n", "\r\n")
    [skill] = loaded(make({"skills/refunds/SKILL.md": text}))[0].skills
    assert skill.body == "one\ntwo"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("just words", "must begin with"),
        ("", "must begin with"),
        ("---\nname: refunds\n", "ends its head"),
        ("---\n- a\n---\nx", "no map"),
        ("---\n---\nx", "no map"),
        ("---\nname: [\n---\nx", "not valid YAML"),
        ("---\nname: &a refunds\ndescription: *a\n---\nx", "aliases"),
        ("---\nname: refunds\nname: refunds\ndescription: d\n---\nx", "twice"),
        ("---\n? [a]\n: b\n---\nx", "a key must be text"),
        ("---\nx: " + "[" * 5_000 + "\n---\nx", "not valid YAML"),
        ("---\nx: " + "y" * 17_000 + "\n---\nx", "more than"),
        ("---\nname: refunds\n---\nx", "`description`"),
        ("---\nname: refunds\ndescription: ' '\n---\nx", "`description`"),
        ("---\ndescription: d\n---\nx", "`name`"),
        (skill_text(head=f"compatibility: {'x' * 501}\n"), "`compatibility`"),
        (skill_text(head="metadata: [a]\n"), "`metadata`"),
        (skill_text(head="metadata:\n  a: [b]\n"), "`metadata.a`"),
        (f"---\nname: refunds\ndescription: {'d' * 1_025}\n---\nx", "`description`"),
        (skill_text("Refunds"), "`name`"),
        (skill_text("returns"), "name of its folder"),
        (skill_text(body=""), "characters below its head"),
        (skill_text(body="x" * (MAX_BODY_CHARS + 1)), "characters below its head"),
        (b"\xff\xfe", "UTF-8"),
        ("x" * (MAX_TEXT_BYTES + 1), "kB"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_a_bad_skill_is_skipped_with_the_reason(make: Make, text: str | bytes, reason: str) -> None:
    assert reason in why_skipped(make({"skills/refunds/SKILL.md": text}))


def test_no_tag_of_yaml_makes_anything_but_text(make: Make) -> None:
    text = skill_text(head="metadata:\n  a: !!python/object/apply:os.system ['false']\n  b: !!int 7\n")
    assert "`metadata.a`" in why_skipped(make({"skills/refunds/SKILL.md": text}))
    text = skill_text(head="license: !!python/name:os.system x\nmetadata:\n  b: !!int 7\n  c: yes\n")
    [skill] = loaded(make({"skills/refunds/SKILL.md": text}))[0].skills
    assert (skill.license, skill.metadata) == ("x", {"b": "7", "c": "yes"})


@pytest.mark.parametrize("name", ["Re", "a--b", "-a", "a_b", "x" * 65])
def test_names_are_those_of_the_format(make: Make, name: str) -> None:
    assert "`name`" in why_skipped(make({f"skills/{name}/SKILL.md": skill_text(name)}), name)
    with pytest.raises(RegistryError):
        Skill(name=name, description="d", body="b")


def test_one_bad_skill_leaves_the_others(make: Make) -> None:
    files = {
        "skills/bad/SKILL.md": "no head",
        "skills/empty/notes.md": "x",
        "skills/good/SKILL.md": skill_text("good", head="version: 2\n"),
        "skills/README.md": "hello",
    }
    plugin, report = loaded(make(files))
    assert [skill.name for skill in plugin.skills] == ["good"]
    told = {part.name: (part.state, part.reason) for part in report.components}
    assert told["bad"][0] == "skipped"
    assert "has no SKILL.md" in told["empty"][1]
    assert told["skills/good"] == ("unused", "`version` is no field that tiny-harness reads")
    assert told["skills/README.md"][0] == "unused"


def test_a_plugin_brings_a_bounded_number_of_skills(make: Make) -> None:
    names = [f"s{number:02}" for number in range(MAX_SKILLS + 2)]
    plugin, report = loaded(make({f"skills/{name}/SKILL.md": skill_text(name) for name in names}))
    assert [skill.name for skill in plugin.skills] == names[:MAX_SKILLS]
    assert [part.name for part in report.components if part.state == "skipped"] == names[MAX_SKILLS:]


def test_a_skill_that_is_elsewhere_is_not_read(make: Make, tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "refunds"
    outside.mkdir(parents=True)
    (outside / "SKILL.md").write_text(skill_text())
    root = make({"skills/other/SKILL.md": skill_text("other")})
    os.symlink(outside, root / "skills" / "refunds")
    plugin, report = loaded(root)
    assert [skill.name for skill in plugin.skills] == ["other"]
    assert any("leads out of the plugin" in part.reason for part in report.components if part.name == "refunds")


def test_a_skill_file_that_is_elsewhere_is_not_read(make: Make) -> None:
    root = make({"secret.md": skill_text(), "skills/refunds/x.md": "x"})
    os.symlink(root / "secret.md", root / "skills" / "refunds" / "SKILL.md")
    assert "leads out of the plugin" in why_skipped(root)


def test_of_two_skills_of_one_name_the_first_counts(make: Make) -> None:
    one, other = (loaded(make({"skills/refunds/SKILL.md": skill_text(body=name)}, name))[0] for name in ("one", "two"))
    plugins, reports = resolve([one, other])
    assert [skill.body for plugin in plugins for skill in plugin.skills] == ["one"]
    assert reports[1].problems == ("skill refunds: one has one of this name",)


def test_two_skills_of_one_name_in_code_are_an_error() -> None:
    skill = Skill(name="refunds", description="d", body="b")
    with pytest.raises(RegistryError):
        resolve([Plugin("one", skills=(skill,)), Plugin("two", skills=(skill,))])
    with pytest.raises(RegistryError):
        resolve([Plugin("one", skills=(skill, skill))])


def test_skills_of_code_tell_plugins_apart() -> None:
    one, other = (Plugin("p", skills=(Skill(name="s", description="d", body=body),)) for body in ("a", "b"))
    assert one.digest != other.digest


@pytest.fixture
def library(make: Make) -> SkillLibrary:
    files = {
        "skills/refunds/SKILL.md": WHOLE,
        "skills/refunds/references/fees.md": "five percent",
        "skills/refunds/big.txt": "x" * (MAX_FILE_CHARS + 10),
        "skills/refunds/huge.txt": "x" * (MAX_TEXT_BYTES + 1),
        "skills/refunds/logo.png": b"\x89PNG\xff",
        "skills/apologies/SKILL.md": skill_text("apologies"),
        "secret.md": "secret",
    }
    root = make(files)
    os.symlink(root / "secret.md", root / "skills/refunds/link.md")
    os.symlink("/etc", root / "skills/refunds/etc")
    return SkillLibrary(loaded(root)[0].skills)


def test_the_catalogue_has_names_and_descriptions_and_nothing_else(library: SkillLibrary) -> None:
    assert library.catalogue_text() == (
        "- apologies: About apologies\n- refunds: How refunds are made. Use it when money goes back."
    )
    assert SkillLibrary(()).catalogue_text() == ""
    assert (len(library), len(SkillLibrary(()))) == (2, 0)


def test_a_description_stays_on_its_line(make: Make) -> None:
    text = '---\nname: refunds\ndescription: "one\\n- fake: two"\n---\nx'
    skills = loaded(make({"skills/refunds/SKILL.md": text}))[0].skills
    assert SkillLibrary(skills).catalogue_text() == "- refunds: one - fake: two"


def test_loading_a_skill_names_its_files_and_needs(library: SkillLibrary) -> None:
    answer = library.load_skill("refunds")
    assert not answer.is_error
    assert "- references/fees.md" in answer.text
    assert "Needs the orders server" in answer.text
    assert library.bodies(["refunds", "gone"]) == (("refunds", "# Refunds\n\nAsk first."),)


def test_a_file_is_read_as_it_is(library: SkillLibrary) -> None:
    answer = library.read_skill_file("refunds", "references/fees.md")
    assert (answer.text, answer.is_error) == ("five percent", False)


def test_a_long_file_is_cut_and_says_so(library: SkillLibrary) -> None:
    answer = library.read_skill_file("refunds", "big.txt")
    assert not answer.is_error
    assert answer.text.endswith("[10 more characters are left out]")


@pytest.mark.parametrize(
    "path",
    [
        "nothing.md",
        "../apologies/SKILL.md",
        "../../secret.md",
        "/etc/passwd",
        "etc/passwd",
        "link.md",
        "references",
        "references/../../../secret.md",
        "..\\secret.md",
        "a\0b",
        "huge.txt",
        "logo.png",
        "x" * 5_000,
    ],
    ids=lambda path: ascii(path)[:30],
)
def test_nothing_else_is_read(library: SkillLibrary, path: str) -> None:
    answer = library.read_skill_file("refunds", path)
    assert answer.is_error
    assert "secret" not in answer.text.replace("secret.md", "")
    assert len(answer.text) < 6_000


def test_an_unknown_skill_is_answered_with_those_that_there_are(library: SkillLibrary) -> None:
    for answer in (library.load_skill("nope"), library.read_skill_file("nope", "x")):
        assert answer.is_error
        assert "apologies, refunds" in answer.text


def test_a_skill_of_code_has_no_files() -> None:
    library = SkillLibrary((Skill(name="s", description="d", body="b"),))
    assert library.read_skill_file("s", "x.md").is_error
    assert library.bodies(["s"]) == (("s", "b"),)


def test_the_list_of_files_is_bounded(make: Make) -> None:
    files = {f"skills/refunds/f{number}.md": "x" for number in range(MAX_LISTED_FILES + 50)}
    [skill] = loaded(make({"skills/refunds/SKILL.md": skill_text(), **files}))[0].skills
    assert len(skill.files) == MAX_LISTED_FILES
