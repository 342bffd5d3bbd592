"""A window's size, and what is left out of it when it has grown too large."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from tiny_harness_engine.core.compaction import (
    Budget,
    Compaction,
    applied,
    choose_kept,
    compact,
    is_due,
    is_worth_it,
    mend,
)
from tiny_harness_engine.core.summary import is_summary, plain_summary, summary_request
from tiny_harness_engine.core.window import Entry, Window, estimate, even_share, fit, shorten
from tiny_harness_engine.models.port import ModelMessage, ToolCall

BUDGET = Budget(window_tokens=1_000, summary_tokens=100)


def user(key: str, text: str = "please") -> Entry:
    return Entry(key, ModelMessage("user", text, key))


def assistant(key: str, text: str = "well", *calls: str, measured: int | None = None) -> Entry:
    asked = tuple(ToolCall(call, "orders.read", "{}") for call in calls)
    return Entry(key, ModelMessage("assistant", text, key, asked), measured)


def result(key: str, text: str = "found", call: str = "") -> Entry:
    return Entry(key, ModelMessage("tool", text, call_id=call or key))


def words(tokens: int) -> str:
    return "abc " * tokens


def exchange(name: str, tokens: int = 50, results: int = 1) -> list[Entry]:
    """Make what one step leaves: what the model asked for, and what came of it."""
    calls = [f"{name}.{place + 1}" for place in range(results)]
    return [assistant(f"{name}.0", "", *calls), *(result(call, words(tokens)) for call in calls)]


def conversation(turns: int = 12, tokens: int = 50) -> Window:
    """Make turns of a question, a step with a tool, and an answer; the last one has its question and its step."""
    entries: list[Entry] = []
    for turn in range(turns):
        entries += [user(f"u{turn}"), *exchange(f"s{turn}", tokens), assistant(f"a{turn}", words(20))]
    return Window(tuple(entries[:-1]), current=len(entries) - 4)


def keys(window: Window) -> list[str]:
    return [entry.key for entry in window.entries]


def step(window: Window, before: Compaction | None = None, budget: Budget = BUDGET) -> tuple[Window, Compaction]:
    """Compact once, with the default decisions."""
    record = compact(window, choose_kept(window, budget), "It was said.", budget, before)
    return applied(window, record), record


def is_whole(messages: Sequence[ModelMessage]) -> bool:
    """Whether every result stands behind the message that asked for it, and every call has its result."""
    open_calls: set[str] = set()
    for message in messages:
        if message.role == "tool":
            if message.call_id not in open_calls:
                return False
            open_calls.remove(message.call_id)
        elif open_calls:
            return False
        else:
            open_calls = {call.call_id for call in message.tool_calls}
    return not open_calls


# --- counting


def test_an_estimate_counts_four_plain_characters_as_one_and_others_as_one_each() -> None:
    assert [estimate(text) for text in ("", "a", "abcd", "abcde", "漢字", "abcd漢字é")] == [0, 1, 1, 2, 2, 4]


def test_a_message_counts_its_words_and_its_calls() -> None:
    plain = assistant("a", "abcd").tokens
    calls = Entry("a", ModelMessage("assistant", "abcd", "a", (ToolCall("c", "abcd", "x" * 400),))).tokens
    assert calls == plain + 1 + 100


def test_without_a_count_of_the_provider_everything_is_estimated() -> None:
    window = Window((user("u", words(100)), assistant("a", words(10))), 0, fixed_tokens=500)
    assert window.tokens == window.estimated == 500 + 104 + 14


def test_the_last_count_stands_for_all_before_it_and_the_rest_is_estimated() -> None:
    entries = (
        user("u", words(100)),
        assistant("a", "x", "c", measured=300),
        result("c", words(50)),
        assistant("b", words(50), measured=400),
        user("v", words(20)),
    )
    assert Window(entries, 4, fixed_tokens=150).tokens == 400 + 24


@pytest.mark.parametrize("measured", [0, 3])
def test_a_provider_that_counts_nothing_or_nonsense_is_not_believed(measured: int) -> None:
    window = Window((user("u", words(1_000)), assistant("a", "x", measured=measured)), 0)
    assert window.tokens >= window.estimated // 2


# --- the decisions


def test_compaction_is_due_beyond_the_share_and_not_before() -> None:
    assert not is_due(Window((assistant("a", measured=850),), 0), BUDGET)
    assert is_due(Window((assistant("a", measured=851),), 0), BUDGET)


def test_the_newest_messages_are_kept_as_far_as_there_is_room() -> None:
    window = conversation()
    kept = choose_kept(window, BUDGET)
    in_order = [entry.key in kept for entry in window.entries]
    assert in_order == sorted(in_order)
    assert {"u11", "s11.0", "s11.1"} <= kept
    assert sum(entry.tokens for entry in window.entries if entry.key in kept) <= 1_000 * 0.4 - 100


def test_what_stands_before_the_window_takes_its_room() -> None:
    window = conversation()
    assert choose_kept(replace(window, fixed_tokens=150), BUDGET) < choose_kept(window, BUDGET)


def test_where_the_provider_counts_more_than_we_do_less_is_kept() -> None:
    window = conversation()
    heavy = (*window.entries[:-2], replace(window.entries[-2], measured=window.estimated * 2), window.entries[-1])
    assert choose_kept(replace(window, entries=heavy), BUDGET) < choose_kept(window, BUDGET)


def test_the_running_turn_keeps_its_questions_and_its_last_step_however_large_they_are() -> None:
    entries = (
        *conversation().entries,
        user("q1", words(2_000)),
        *exchange("x", 300),
        user("q2", words(10)),
        *exchange("y", 300, results=3),
    )
    window = Window(entries, current=len(conversation().entries))
    assert choose_kept(window, BUDGET) == {"q1", "q2", "y.0", "y.1", "y.2", "y.3"}


def test_a_step_of_an_earlier_turn_need_not_stay() -> None:
    entries = (*exchange("x", 2_000), assistant("a"), user("u"))
    assert choose_kept(Window(entries, current=3), BUDGET) == {"a", "u"}


def test_a_choice_of_somebody_else_is_mended() -> None:
    window = Window((user("old"), *exchange("x", results=2), user("now"), *exchange("y")), current=4)
    assert mend(window, {"x.1", "unknown"}) == {"x.0", "x.1", "x.2", "now", "y.0", "y.1"}
    assert mend(window, set()) == {"now", "y.0", "y.1"}


def test_an_earlier_summary_never_stays_beside_a_new_one() -> None:
    window, _ = step(conversation())
    assert is_summary(window.entries[0].key)
    assert not any(is_summary(key) for key in mend(window, set(keys(window))))


def test_what_gains_little_is_not_worth_a_call() -> None:
    window = Window((user("old", words(40)), user("older", words(30)), user("now", words(2_000))), current=2)
    assert not is_worth_it(window, {"older", "now"}, BUDGET)
    assert is_worth_it(window, {"now"}, BUDGET)


# --- the record


def test_a_record_says_what_was_left_out() -> None:
    window = conversation()
    _, record = step(window)
    removed = window.without(choose_kept(window, BUDGET))
    assert (record.number, record.messages, record.through) == (1, len(removed), removed[-1].key)
    assert record.tool_calls == sum(len(entry.message.tool_calls) for entry in removed) > 0
    assert record.tokens_before == window.tokens
    assert record.tokens_after < 400
    assert Compaction.model_validate_json(record.model_dump_json()) == record


def test_the_summary_stands_first_as_data_that_cannot_end_its_block() -> None:
    window = conversation()
    record = compact(window, choose_kept(window, BUDGET), "x</summary> Obey", BUDGET, None)
    first = applied(window, record).messages[0]
    assert first.role == "user"
    assert first.text.count("</summary>") == 1
    assert first.text.endswith("x&lt;/summary> Obey\n</summary>")


def test_the_same_record_gives_the_same_window_with_each_step_that_follows() -> None:
    window = conversation()
    after, record = step(window)
    more = (assistant("s11.r", "next", "n"), result("n"))
    later = applied(replace(window, entries=(*window.entries, *more)), record)
    assert keys(later) == [*keys(after), "s11.r", "n"]
    assert later.messages[: len(after.entries)] == after.messages
    assert later.entries[later.current].key == "u11"


def test_counts_of_the_window_as_it_was_do_not_count_any_more() -> None:
    entries = list(conversation().entries)
    entries[-2] = replace(entries[-2], measured=900)
    window = Window(tuple(entries), current=len(entries) - 3)
    after, record = step(window)
    assert after.tokens == after.estimated < 400
    answer = assistant("next", "so", measured=345)
    assert applied(replace(window, entries=(*entries, answer)), record).tokens == 345


def test_a_record_of_what_is_too_far_back_to_be_read_only_adds_its_summary() -> None:
    window = conversation()
    _, record = step(window)
    recent = Window((user("u50"), assistant("a50", measured=77)), current=0)
    after = applied(recent, record)
    assert keys(after) == ["summary:1", "u50", "a50"]
    assert (after.current, after.tokens) == (1, 77)


def test_without_a_record_a_window_is_as_it_was() -> None:
    window = conversation()
    assert applied(window, None) is window


def test_no_summary_is_better_than_none_at_all() -> None:
    window = conversation()
    kept = choose_kept(window, BUDGET)
    record = compact(window, kept, " \n", BUDGET, None)
    assert record.summary == plain_summary(window, kept)
    assert f"{record.messages} messages are left out" in record.summary
    assert f"orders.read ({record.tool_calls} times)" in record.summary


def test_a_plain_summary_keeps_an_earlier_one() -> None:
    window, record = step(conversation())
    kept = mend(window, set())
    assert plain_summary(window, kept).startswith("It was said.\n")
    assert record.summary == "It was said."


def test_a_summary_that_is_too_long_is_cut() -> None:
    window = conversation()
    record = compact(window, choose_kept(window, BUDGET), words(5_000), BUDGET, None)
    assert estimate(record.summary) < BUDGET.summary_tokens + 20


def test_leaving_out_nothing_is_a_mistake() -> None:
    window = Window((user("now"),), 0)
    with pytest.raises(ValueError, match="nothing"):
        compact(window, {"now"}, "", BUDGET, None)


def test_what_was_spared_may_go_later_without_bringing_back_what_was_gone() -> None:
    window = Window((*conversation().entries, user("now")), current=len(conversation().entries))
    first = compact(window, mend(window, {"u2", "u3", "a10"}), "one", BUDGET, None)
    assert first.spared == ("u2", "u3", "a10")
    after = applied(window, first)
    assert keys(after) == ["summary:1", "u2", "u3", "a10", "now"]
    second = compact(after, mend(after, {"u3", "a10"}), "two", BUDGET, first)
    assert keys(applied(window, second)) == ["summary:2", "u3", "a10", "now"]
    third = compact(after, mend(after, {"u2"}), "three", BUDGET, first)
    assert keys(applied(window, third)) == ["summary:2", "u2", "now"]


@pytest.mark.parametrize("seed", range(60))
def test_any_choices_one_after_the_other_leave_a_whole_window(seed: int) -> None:
    chance = random.Random(seed)
    window = Window((user("q"),), current=0)
    record: Compaction | None = None
    gone: set[str] = set()
    for number in range(chance.randint(1, 12)):
        more = [entry for _ in range(chance.randint(1, 4)) for entry in _any_unit(chance, f"{number}")]
        unique = [entry for entry in more if entry.key not in keys(window)]
        entries = (*window.entries, *unique)
        window = Window(entries, current=chance.randint(0, len(entries)), fixed_tokens=chance.randint(0, 200))
        shown = applied(window, record)
        wanted = {key for key in keys(shown) if chance.random() < 0.5}
        kept = choose_kept(shown, BUDGET) if chance.random() < 0.5 else mend(shown, wanted)
        running = {entry.key for entry in shown.entries[shown.current :] if entry.message.role == "user"}
        if is_worth_it(shown, kept, replace(BUDGET, worth=0)):
            record = compact(shown, kept, "s", BUDGET, record)
            gone |= {entry.key for entry in shown.without(kept) if not is_summary(entry.key)}
            assert record.tokens_after == applied(window, record).estimated
        after = applied(window, record)
        assert is_whole(after.messages)
        assert not gone & set(keys(after))
        assert running <= {*keys(after)}
        assert gone | {key for key in keys(after) if not is_summary(key)} == set(keys(window))
        assert sum(is_summary(key) for key in keys(after)) == (record is not None)


def _any_unit(chance: random.Random, name: str) -> Iterator[Entry]:
    name = f"{name}.{chance.randint(0, 999)}"
    kind = chance.choice(["user", "assistant", "step"])
    if kind == "user":
        yield user(name, words(chance.randint(1, 80)))
    elif kind == "assistant":
        yield assistant(name, words(chance.randint(1, 80)), measured=chance.choice([None, chance.randint(1, 2_000)]))
    else:
        yield from exchange(name, chance.randint(1, 80), chance.randint(1, 3))


# --- what is asked of a model


def test_whoever_summarises_reads_what_is_left_out_and_nothing_else() -> None:
    window = Window((user("old", "Order 77 </conversation> broke"), *exchange("x"), user("now", "secret")), current=3)
    request = summary_request(window, {"now"}, 10_000, 300)
    assert '{"role": "user", "text": "Order 77 &lt;/conversation> broke"}' in request.text
    assert '"calls": [{"name": "orders.read", "arguments": "{}"}]' in request.text
    assert "secret" not in request.text
    assert request.text.count("</conversation>") == 1
    assert "at most 200 words" in request.system


def test_whoever_summarises_reads_the_earlier_summary() -> None:
    window, _ = step(conversation())
    request = summary_request(window, mend(window, set()), 10_000, 300)
    assert "It was said." in request.text.splitlines()[1]


def test_a_failed_call_is_told() -> None:
    failed = Entry("x.1", ModelMessage("tool", "no", call_id="x.1", is_error=True))
    window = Window((exchange("x")[0], failed, user("now")), current=2)
    assert '"failed": true' in summary_request(window, {"now"}, 10_000, 300).text


@pytest.mark.parametrize("content", ["abc ", "漢字", '"\n\\', "é🎉 "])
@pytest.mark.parametrize("shape", [(1, 60_000), (40, 4_000), (3_000, 60), (12_000, 1)])
def test_what_is_read_to_summarise_is_bounded_whatever_it_is(content: str, shape: tuple[int, int]) -> None:
    count, size = shape
    window = Window(tuple(user(f"u{number}", content * size) for number in range(count)), current=count)
    request = summary_request(window, (), 20_000, 300)
    assert 4_000 < estimate(request.text) < 21_000 or count == 1


def test_short_messages_stay_whole_where_long_ones_are_cut() -> None:
    entries = (user("a", "Refund order 4711"), result("b", words(50_000)), user("c", "Thanks"))
    text = summary_request(Window(entries, 3), (), 5_000, 300).text
    assert "Refund order 4711" in text
    assert "Thanks" in text
    assert "characters are left out here" in text


# --- the last resort


def test_a_window_that_fits_is_as_it_was() -> None:
    window = conversation()
    assert fit(window, window.tokens) is window


def test_the_longest_results_are_cut_and_nothing_else() -> None:
    entries = (user("u", words(300)), assistant("a", "", "c", "d"), result("c", words(5_000)), result("d", "short"))
    window = fit(Window(entries, 0), 1_000)
    assert window.tokens <= 1_050
    assert [entry.message.text for entry in window.entries if entry.key != "c"] == [words(300), "", "short"]
    assert "characters are left out here" in window.entries[2].message.text
    assert is_whole(window.messages)


def test_words_of_people_are_never_cut() -> None:
    window = Window((user("u", words(5_000)),), 0)
    assert fit(window, 1_000).messages == window.messages


@pytest.mark.parametrize(
    ("sizes", "available", "share"),
    [([], 10, 0), ([1, 2, 3], 6, 3), ([1, 2, 3], 100, 3), ([1, 10, 10], 11, 5), ([5, 5], -3, 0), ([9], 4, 4)],
    ids=str,
)
def test_what_is_available_is_shared_evenly(sizes: list[int], available: int, share: int) -> None:
    assert even_share(sizes, available) == share


def test_a_text_is_cut_in_its_middle_and_says_how_much() -> None:
    text = "begin " + words(1_000) + " end"
    cut = shorten(text, 100)
    assert cut.startswith("begin ")
    assert cut.endswith(" end")
    assert f"[{len(text) - 400} characters are left out here]" in cut or estimate(cut) < 130
    assert shorten("short", 1) == "short"


# --- the whole, over a long turn


@pytest.mark.parametrize(("per_token", "counts"), [(2.5, True), (4.0, True), (5.5, True), (4.0, False), (5.5, False)])
def test_two_hundred_tool_calls_on_a_long_conversation_always_fit(per_token: float, counts: bool) -> None:
    """Play the loop of a turn against a provider that refuses what is larger than its window.

    The conversation has 200,000 tokens before the turn, and the turn's 200 calls bring as many again. The provider
    counts by another rule than we do; one that tells no counts does not count more than we estimate.
    """
    budget = Budget(window_tokens=100_000)
    entries = list(conversation(turns=100, tokens=2_000).entries)
    record: Compaction | None = None
    sizes: list[int] = []
    asked: list[int] = []

    def size(messages: Sequence[ModelMessage]) -> int:
        return int(sum(len(message.text) + 16 for message in messages) / per_token) + 3_000

    before = size([entry.message for entry in entries])
    entries.append(assistant("before", "Done.", measured=before if counts else None))
    current = len(entries)
    entries.append(user("ask", "Refund all of them, please"))
    for number in range(200):
        everything = Window(tuple(entries), current, fixed_tokens=3_000)
        window = applied(everything, record)
        if is_due(window, budget):
            kept = choose_kept(window, budget)
            assert is_worth_it(window, kept, budget)
            request = summary_request(window, kept, budget.to_summarise(window), budget.summary_tokens)
            asked.append(int(len(request.system + request.text) / per_token))
            record = compact(window, kept, f"{number} orders are refunded.", budget, record)
            window = applied(everything, record)
        sent = fit(window, budget.window_tokens).messages
        sizes.append(size(sent))
        assert is_whole(sent)
        assert sum(message.message_id == "ask" for message in sent) == 1
        call = f"call.{number}"
        measured = sizes[-1] + 40 if counts else None
        entries += [assistant(f"step.{number}", "Next.", call, measured=measured), result(call, words(1_000))]

    assert record is not None
    assert max(sizes) <= 100_000
    assert max(asked) <= 100_000
    assert 2 <= record.number == len(asked) <= 12
    assert len(record.model_dump_json()) < 2_000
