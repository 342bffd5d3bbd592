"""The ring: what seals, what opens, and where it comes from."""

import stat
from pathlib import Path

import pytest

from tiny_harness.errors import ConfigError
from tiny_harness.seal import UNSEALED_RING, make_key, parse_ring, read_ring, ring_of
from tiny_harness.settings import Settings

OLD, NEW = make_key(), make_key()


def test_what_is_sealed_opens_in_its_place_and_nowhere_else() -> None:
    ring = parse_ring(OLD, "test")
    sealed = ring.seal(b"the words", "task:1")
    assert b"words" not in sealed
    assert ring.open(sealed, "task:1") == b"the words"
    assert ring.open(sealed, "task:2") is None
    assert ring.seal(b"the words", "task:1") != sealed


def test_one_changed_bit_anywhere_and_it_does_not_open() -> None:
    ring = parse_ring(OLD, "test")
    sealed = ring.seal(b"w", "p")
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert ring.open(bytes(changed), "p") is None, place
    for length in range(len(sealed)):
        assert ring.open(sealed[:length], "p") is None, length


def test_a_rotation_loses_nothing_while_both_keys_are_in_the_ring() -> None:
    old, both, new = parse_ring(OLD, ""), parse_ring(f"{NEW},{OLD}", ""), parse_ring(NEW, "")
    before, after = old.seal(b"w", "p"), both.seal(b"w", "p")
    assert [both.open(sealed, "p") for sealed in (before, after)] == [b"w", b"w"]
    assert (new.open(before, "p"), new.open(after, "p")) == (None, b"w")
    # A process that has the new key at the end already opens what others seal with it.
    assert parse_ring(f"{OLD} {NEW}", "").open(after, "p") == b"w"


MALFORMED = {
    "a word": "no-key",
    "too short": make_key()[:-6],
    "one good, one not": f"{NEW},x",
    "no key at all": "unsealed",
    "nothing": " , ",
    "a comment": "# " + NEW,
}


@pytest.mark.parametrize("words", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_ring_stops_the_start_and_shows_no_key(words: str) -> None:
    with pytest.raises(ConfigError) as failed:
        parse_ring(words, "TINY_HARNESS_SEAL_KEYS")
    assert "TINY_HARNESS_SEAL_KEYS" in str(failed.value)
    assert not any(word in str(failed.value) for word in words.split(",") if len(word) > 10)


def test_a_ring_shows_no_key_when_it_is_printed() -> None:
    ring = parse_ring(NEW, "")
    assert "keys" not in repr(ring)


def test_the_variable_wins_and_without_it_a_temporal_elsewhere_gets_nothing_sealed(tmp_path: Path) -> None:
    database = tmp_path / "temporal.db"
    assert read_ring(database, {"TINY_HARNESS_SEAL_KEYS": NEW}) == parse_ring(NEW, "")
    assert not (tmp_path / "seal.keys").exists()
    assert read_ring(None, {}) == UNSEALED_RING


def test_a_home_makes_its_ring_once_for_its_owner_only(tmp_path: Path) -> None:
    database = tmp_path / "new" / "temporal.db"
    ring = read_ring(database, {})
    path = tmp_path / "new" / "seal.keys"
    assert not ring.opens_unsealed
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    database.write_bytes(b"now there is one")
    assert read_ring(database, {}) == ring
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [entry.name for entry in sorted(path.parent.iterdir())] == ["seal.keys", "temporal.db"]


def test_a_home_that_is_older_than_sealing_goes_on_with_what_it_has(tmp_path: Path) -> None:
    database = tmp_path / "temporal.db"
    database.write_bytes(b"histories")
    ring = read_ring(database, {})
    assert ring.opens_unsealed
    assert not ring.is_empty
    assert read_ring(database, {}) == ring


@pytest.mark.parametrize("content", ["", "nonsense", "é"])
def test_a_ring_file_that_holds_none_stops_the_start(tmp_path: Path, content: str) -> None:
    (tmp_path / "seal.keys").write_text(content)
    with pytest.raises(ConfigError):
        read_ring(tmp_path / "temporal.db", {})


def test_a_ring_is_not_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text(NEW)
    (tmp_path / "seal.keys").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError):
        read_ring(tmp_path / "temporal.db", {})


def test_a_server_of_ours_that_keeps_nothing_has_a_ring_that_is_kept_nowhere(tmp_path: Path) -> None:
    store = {"sqlite_path": tmp_path / "store.db"}
    settings = Settings.model_validate({"store": store, "temporal": {"embedded": {"persist": False}}})
    first, second = ring_of(settings, {}), ring_of(settings, {})
    assert not first.is_empty
    assert first != second
    assert list(tmp_path.iterdir()) == []
    assert ring_of(settings, {"TINY_HARNESS_SEAL_KEYS": NEW}) == parse_ring(NEW, "")
