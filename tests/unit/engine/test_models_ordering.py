"""The window in the order that providers demand."""

from tiny_harness_engine.models import ModelMessage, ToolCall
from tiny_harness_engine.models.ordering import NO_RESULT, in_order


def _asks(*ids: str) -> ModelMessage:
    return ModelMessage("assistant", "", tool_calls=tuple(ToolCall(call_id, "t", "{}") for call_id in ids))


def _result(call_id: str, text: str = "done") -> ModelMessage:
    return ModelMessage("tool", text, call_id=call_id)


USER, MODEL = ModelMessage("user", "hi"), ModelMessage("assistant", "ho")


def test_a_conversation_that_is_in_order_stays() -> None:
    talk = [USER, MODEL, USER, _asks("a", "b"), _result("a"), _result("b"), MODEL, USER]
    assert in_order(talk) == talk


def test_results_follow_their_calls_in_the_order_of_the_calls() -> None:
    talk = [USER, _asks("a", "b"), USER, _result("b"), _result("a")]
    assert in_order(talk) == [USER, _asks("a", "b"), _result("a"), _result("b"), USER]


def test_a_result_without_its_call_is_left_out() -> None:
    assert in_order([_result("a"), USER, _asks("b"), _result("b"), _result("a")]) == [USER, _asks("b"), _result("b")]


def test_a_call_without_a_result_gets_one_that_says_so() -> None:
    missing = ModelMessage("tool", NO_RESULT, call_id="a", is_error=True)
    assert in_order([_asks("a"), USER]) == [_asks("a"), missing, USER]


def test_a_second_result_is_left_out() -> None:
    assert in_order([_asks("a"), _result("a"), _result("a", "again")]) == [_asks("a"), _result("a")]


def test_an_id_may_be_used_again_later() -> None:
    talk = [_asks("a"), _result("a", "1"), _asks("a"), _result("a", "2")]
    assert in_order(talk) == talk
