"""Text that is data, in a model's window."""

import pytest

from tiny_harness_engine.core.blocks import in_block


def test_a_text_stands_between_its_tags_as_it_is() -> None:
    assert in_block("goal", "find <b> & the goal>") == "<goal>\nfind <b> & the goal>\n</goal>"


@pytest.mark.parametrize("tag", ["</goal>", "</GOAL >", "< / goal>", "<goal>", "<goal x='1'>", "</\ngoal>"])
def test_a_text_can_neither_end_its_block_nor_open_another(tag: str) -> None:
    inside = in_block("goal", f"a {tag} b").removeprefix("<goal>\n").removesuffix("\n</goal>")
    assert inside == f"a &lt;{tag[1:]} b"


def test_a_tag_of_another_name_stays() -> None:
    assert "<goalkeeper>" in in_block("goal", "<goalkeeper>")
