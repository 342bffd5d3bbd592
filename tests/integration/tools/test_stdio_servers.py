"""Tools of servers that are processes: calls, results, and every way in which a process goes wrong."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from tests.integration.tools.conftest import PATIENCE_S, OpenHub, is_alive, lines, stdio, until
from tiny_harness.errors import InvalidArguments, SchemaDrift, ToolFailed, UnknownTool
from tiny_harness.plugins.servers import StdioServer
from tiny_harness_engine.tools import Limits, Progress, Tool, ToolHub, ToolResult, result_block

SHORT = Limits(call_s=0.5)


def tool(hub: ToolHub, name: str) -> Tool:
    return next(one for one in hub.tools() if one.name == f"shop/main.{name}")


async def call(hub: ToolHub, name: str, **arguments: object) -> ToolResult:
    async with asyncio.timeout(PATIENCE_S):
        return await hub.call(f"shop/main.{name}", json.dumps(arguments))


async def failed(hub: ToolHub, name: str, **arguments: object) -> ToolFailed:
    with pytest.raises(ToolFailed) as caught:
        await call(hub, name, **arguments)
    return caught.value


def state(hub: ToolHub) -> str:
    return hub.health()[0]["state"]


async def test_tools_are_listed_with_what_their_annotations_say(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    hints = {name: (tool(hub, name).is_read_only, tool(hub, name).is_idempotent) for name in ("add", "label", "refund")}
    assert hints == {"add": (True, True), "label": (False, True), "refund": (False, False)}
    assert tool(hub, "add").description == "Add two numbers."
    assert tool(hub, "add").parameters["required"] == ["a", "b"]
    assert len(tool(hub, "add").schema_hash) == 64


async def test_a_call_answers_text_and_data(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    result = await call(hub, "add", a=1, b=2)
    assert (result.data, result.is_error) == ({"total": 3}, False)
    assert json.loads(result.text) == {"total": 3}


async def test_wrong_arguments_are_refused_with_their_place_and_nothing_is_sent(
    open_hub: OpenHub, tmp_path: Path
) -> None:
    hub = await open_hub(stdio(tmp_path))
    with pytest.raises(InvalidArguments) as caught:
        await call(hub, "refund", order=7)
    assert caught.value.path == "$.order"
    for text in ("{", "[]", '{"order": "x"', "nonsense"):
        with pytest.raises(InvalidArguments):
            await hub.call("shop/main.refund", text)
    assert lines(tmp_path / "refunds") == []


@pytest.mark.parametrize("name", ["shop/main.missing", "shop/other.add", "add", ""])
async def test_an_unknown_tool_is_refused(open_hub: OpenHub, tmp_path: Path, name: str) -> None:
    hub = await open_hub(stdio(tmp_path))
    with pytest.raises(UnknownTool):
        await hub.call(name, "{}")


async def test_a_tool_that_fails_says_so_in_its_result(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    said = await call(hub, "fail", kind="said")
    assert said.is_error
    assert "the order is closed" in said.text
    assert (await call(hub, "fail", kind="other")).is_error


async def test_five_megabytes_are_cut_and_say_so(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    result = await call(hub, "big", size=5_000_000)
    assert len(result.text.encode()) < 257 * 1024
    assert "the result has 5000000 bytes" in result.text[-200:]
    assert (await call(hub, "add", a=1, b=1)).data == {"total": 2}


async def test_a_message_beyond_the_bound_ends_the_connection_and_not_the_hub(
    open_hub: OpenHub, tmp_path: Path
) -> None:
    hub = await open_hub(stdio(tmp_path))
    failure = await failed(hub, "big", size=9_000_000)
    assert failure.may_have_run
    assert "more than 16777216 bytes" in failure.reason
    await until(lambda: state(hub) == "up")
    assert (await call(hub, "add", a=1, b=1)).data == {"total": 2}


async def test_binary_content_is_described(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    picture = await call(hub, "picture")
    assert "[an image, image/png, 3004 bytes: not shown]" in picture.text
    assert "a caption" in picture.text
    assert "AAAA" not in picture.text
    attachment = await call(hub, "attachment")
    assert attachment.text == "[the file file:///invoice.pdf, application/pdf, 300 bytes: not shown]"


async def test_a_result_cannot_close_its_block(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    result = await call(hub, "inject")
    assert "\x1b" not in result.text
    assert "\u202e" not in result.text
    block = result_block(result)
    assert block.startswith("<tool_result>\n")
    assert block.endswith("\n</tool_result>")
    assert block.count("</tool_result>") == 1
    assert "< / TOOL_RESULT >" not in block
    assert "refund everything" in block


async def test_progress_is_reported(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    seen: list[Progress] = []
    result = await hub.call("shop/main.slow", '{"steps": 3}', on_progress=seen.append)
    assert result.text == "done"
    await until(lambda: len(seen) == 3)
    assert Progress(3, 3, "step 3") in seen


async def test_a_hundred_calls_at_once_each_get_their_own_answer(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    results = await asyncio.gather(*(call(hub, "add", a=number, b=0) for number in range(100)))
    assert [result.data for result in results] == [{"total": number} for number in range(100)]
    assert hub.health()[0]["calls"] == 100


async def test_a_tool_that_hangs_is_cancelled_at_its_deadline(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path), limits=SHORT)
    failure = await failed(hub, "hang", word="x")
    assert failure.may_have_run
    assert "0.5 s" in failure.reason
    await until(lambda: "cancelled x" in lines(tmp_path / "hangs"))
    assert (await call(hub, "add", a=1, b=1)).data == {"total": 2}
    assert hub.health()[0]["restarts"] == 0


async def test_a_cancelled_call_is_cancelled_on_the_server(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    running = asyncio.create_task(call(hub, "hang", word="y"))
    await until(lambda: "began y" in lines(tmp_path / "hangs"))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: "cancelled y" in lines(tmp_path / "hangs"))
    assert hub.health()[0]["running"] == 0


async def test_a_server_that_dies_in_a_call_fails_every_running_call_and_comes_back(
    open_hub: OpenHub, tmp_path: Path
) -> None:
    hub = await open_hub(stdio(tmp_path))
    other = asyncio.create_task(failed(hub, "hang", word="z"))
    await until(lambda: "began z" in lines(tmp_path / "hangs"))
    failure = await failed(hub, "die", word="x")
    assert "ended with status 3" in (await other).reason  # and not: no answer in time
    assert failure.may_have_run
    assert "ended with status 3" in failure.reason
    assert "about to die" in failure.reason
    await until(lambda: state(hub) == "up")
    assert (await call(hub, "add", a=1, b=2)).data == {"total": 3}
    assert lines(tmp_path / "deaths") == ["x"]  # nobody called it again


async def test_while_a_server_is_down_its_tools_stay_and_calls_fail_at_once(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    before = hub.tools()
    os.kill(int(lines(tmp_path / "pids")[0]), signal.SIGKILL)
    await until(lambda: state(hub) != "up")
    failure = await failed(hub, "refund", order="1")
    assert not failure.may_have_run
    assert failure.transient
    assert "killed by signal 9" in failure.reason
    assert hub.tools() == before
    assert lines(tmp_path / "refunds") == []
    await until(lambda: state(hub) == "up")
    assert (await call(hub, "refund", order="1")).text == "refunded 1"


async def test_a_call_with_an_old_hash_is_refused_and_the_new_listing_is_there(
    open_hub: OpenHub, tmp_path: Path
) -> None:
    hub = await open_hub(stdio(tmp_path))
    old = tool(hub, "add").schema_hash
    assert (await hub.call("shop/main.add", '{"a": 1, "b": 1}', schema_hash=old)).data == {"total": 2}
    await call(hub, "change")
    await until(lambda: tool(hub, "add").schema_hash != old)
    with pytest.raises(SchemaDrift):
        await hub.call("shop/main.add", '{"a": 1, "b": 1}', schema_hash=old)
    new = tool(hub, "add").schema_hash
    assert (await hub.call("shop/main.add", '{"a": 1, "b": 1, "c": 1}', schema_hash=new)).data == {"total": 3}


async def test_a_restart_with_another_schema_is_drift_too(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path))
    await call(hub, "change")
    await until(lambda: "c" in tool(hub, "add").parameters["required"])
    changed = tool(hub, "add").schema_hash
    os.kill(int(lines(tmp_path / "pids")[0]), signal.SIGKILL)
    await until(lambda: tool(hub, "add").schema_hash != changed)
    with pytest.raises(SchemaDrift):
        await hub.call("shop/main.add", '{"a": 1, "b": 1, "c": 1}', schema_hash=changed)


async def test_a_process_gets_a_minimal_environment_and_its_own_secrets(open_hub: OpenHub, tmp_path: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "OPENAI_API_KEY": "sk-ours",
        "TINY_HARNESS_TOKEN": "ours",
        "TINY_HARNESS_TOOL_SECRET_SHOP_MAIN__API_KEY": "for the shop",
        "TINY_HARNESS_TOOL_SECRET_SHOP_OTHER__API_KEY": "for another",
    }
    server = stdio(tmp_path, env={"MODE": "test", "WHERE": "${PLUGIN_DATA}/x ${HOME}"})
    hub = await open_hub(server, environ=environ)
    found = json.loads((await call(hub, "environment")).text)
    data = str(tmp_path / "data" / "shop")
    mine = {key: value for key, value in found["env"].items() if key not in ("LC_CTYPE", "__CF_USER_TEXT_ENCODING")}
    assert mine == {
        "PATH": environ["PATH"],
        "HOME": str(tmp_path),
        "API_KEY": "for the shop",
        "MODE": "test",
        "WHERE": f"{data}/x ${{HOME}}",
        "PLUGIN_DATA": data,
    }
    assert found["cwd"] == data
    assert os.stat(data).st_mode & 0o777 == 0o700


async def test_garbage_on_standard_output_is_ignored(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py", "noisy"))
    assert (await call(hub, "work")).text == "worked"


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("broken", "ended with status 1; its last words: no licence found"),
        ("flood", "what it writes is not MCP"),
        ("endless", "it sent a message of more than 16777216 bytes"),
    ],
)
async def test_a_server_that_cannot_speak_is_down_with_the_reason(
    open_hub: OpenHub, tmp_path: Path, kind: str, reason: str
) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py", kind), stdio(tmp_path, name="second"))
    [first, second] = hub.health()
    assert (first["state"], first["reason"]) == ("down", reason)
    assert second["state"] == "up"
    failure = await failed(hub, "work")
    assert not failure.may_have_run
    assert reason in failure.reason


async def test_a_secret_in_a_servers_last_words_is_masked(open_hub: OpenHub, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "TINY_HARNESS_TOOL_SECRET_SHOP_MAIN__LICENCE": "licence found"}
    hub = await open_hub(stdio(tmp_path, "raw.py", "broken"), environ=environ)
    assert hub.health()[0]["reason"] == "ended with status 1; its last words: no :masked:"
    assert "licence" not in str(await failed(hub, "work"))


async def test_a_program_that_is_not_there_is_named(open_hub: OpenHub) -> None:
    hub = await open_hub(StdioServer("main", "no-such-program-anywhere", plugin="shop"))
    assert hub.health()[0]["reason"] == "there is no program 'no-such-program-anywhere' that can be run"


async def test_a_server_that_never_answers_does_not_keep_the_hub_from_starting(
    open_hub: OpenHub, tmp_path: Path
) -> None:
    good, mute = stdio(tmp_path), stdio(tmp_path, "raw.py", "mute", name="mute")
    hub = await open_hub(mute, good, settle=False, limits=Limits(start_s=3))
    await until(lambda: hub.health()[0]["state"] == "down" and hub.health()[1]["state"] == "up")
    assert hub.health()[0]["reason"] == "it did not answer in time"
    assert (await call(hub, "add", a=1, b=1)).data == {"total": 2}


async def test_a_first_call_waits_for_a_slow_start(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py", "slow"), settle=False)
    assert state(hub) == "starting"
    assert hub.tools() == ()
    assert (await call(hub, "work")).text == "worked"


async def test_broken_tools_are_left_out_and_the_others_stay(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py"))
    names = [one.name.removeprefix("shop/main.") for one in hub.tools()]
    assert names == ["unstructured", "promised", "malformed", "nothing", "refused", "work"]
    left_out = hub.health()[0]["left_out"]
    assert len(left_out) == 2
    assert left_out[0].startswith("broken schema: its schema is invalid")


async def test_structured_content_against_the_tools_own_schema_is_left_out(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py"))
    result = await call(hub, "unstructured")
    assert (result.data, result.is_error) == (None, False)
    assert result.text.startswith("fine\n[structured content left out: it breaks the tool's own schema at $.total:")
    assert "there is none, though the tool promises some" in (await call(hub, "promised")).text


@pytest.mark.parametrize("name", ["malformed", "nothing"])
async def test_an_answer_that_is_none_is_an_answer_all_the_same(open_hub: OpenHub, tmp_path: Path, name: str) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py"))
    result = await call(hub, name)
    assert result.is_error
    assert "may have done its work" in result.text
    assert (await call(hub, "work")).text == "worked"


async def test_a_servers_refusal_is_its_answer(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py"))
    result = await call(hub, "refused")
    assert (result.text, result.is_error) == ("[the server refused the call: come back later (code -32042)]", True)


async def test_a_server_that_closes_its_output_is_ended(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py", "closing"))
    failure = await failed(hub, "work")
    assert (failure.may_have_run, failure.reason) == (True, "it closed its output")
    await until(lambda: len(lines(tmp_path / "pids")) == 2 and not is_alive(int(lines(tmp_path / "pids")[0])))


async def test_a_wedged_server_is_started_anew(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py", "deaf"), limits=SHORT)
    failure = await failed(hub, "work")
    assert failure.may_have_run
    await until(lambda: len(lines(tmp_path / "pids")) == 2 and state(hub) == "up")
    assert not is_alive(int(lines(tmp_path / "pids")[0]))


async def test_a_busy_server_is_not_taken_for_dead_while_a_call_runs(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py", "busy"))
    hub._servers[0]._tell(is_suspect=True)  # pyright: ignore[reportPrivateUsage] - as after a deadline
    assert (await call(hub, "work")).text == "worked"
    assert hub.health()[0]["restarts"] == 0


async def test_closing_leaves_no_process(open_hub: OpenHub, tmp_path: Path) -> None:
    async with ToolHub([stdio(tmp_path, "raw.py", "stubborn")], data=tmp_path / "data") as hub:
        await hub.settle(PATIENCE_S)
        pids = [int(line) for line in lines(tmp_path / "pids")]
        assert len(pids) == 2
        assert all(map(is_alive, pids))
    await until(lambda: not any(map(is_alive, pids)))


async def test_a_server_that_dies_takes_its_own_children_with_it(open_hub: OpenHub, tmp_path: Path) -> None:
    hub = await open_hub(stdio(tmp_path, "raw.py", "stubborn"))
    [parent, child] = [int(line) for line in lines(tmp_path / "pids")]
    os.kill(parent, signal.SIGKILL)
    await until(lambda: not is_alive(child))
    await until(lambda: state(hub) == "up")
