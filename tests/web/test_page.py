"""The page, used as people use it: real Chromium, real harness, by keys where keys are enough (R5, R6.7, R9.4)."""

import json
import os
import signal
import time
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.npm import npm_folder
from tests.ports import free_port
from tests.served import Served, http_client, serving
from tests.web.browser import CONTEXTS, PHONE, Surface, opened
from tests.wire import send, user_message
from tiny_harness.client import Address, connect
from tiny_harness.states import TaskState

pytestmark = pytest.mark.timeout(180)

HERE = Path(__file__).parent
IS_SOAK = bool(os.environ.get("TINY_HARNESS_SOAK"))
LONG = 5_000 if IS_SOAK else 450
"""Commands; each has its answer."""
HOSTILE = (HERE / "hostile.md").read_text()


@pytest.mark.parametrize("context", ["1280-light", "390-touch"])
async def test_the_whole_story_is_told_by_keys_alone(browser: Browser, shop: Served, context: str) -> None:
    async with opened(browser, shop, **CONTEXTS[context]) as ann:
        await ann.is_in("Not started")
        await expect(ann.page.locator("#empty")).to_contain_text("/model")
        await ann.picture(f"{context} first run")
        await ann.write("Hello!")
        await ann.shows("What has happened?")
        await ann.is_in("Input required · Your turn")
        await ann.write("/status")
        await ann.shows("Usage: 1 calls")
        await ann.write("/sub-task look at the order")
        await ann.shows("is open and")
        await child_and_back(ann)
        await ann.write("My kettle arrived broken. It is order A-17.")
        await ann.is_in("Input required · Waiting for your answer")
        await ann.picture(f"{context} question")
        await ann.tab_to("#choices button")
        await ann.page.keyboard.press("Enter")
        await ann.is_in("Input required · Waiting for your approval")
        await ann.is_whole()
        await ann.tab_to("#choices button")
        await ann.page.keyboard.press("Enter")
        await ann.shows("Done. I paid back")
        await expect(ann.page.locator("#items .tools").first).to_contain_text("Ran")
        await ann.picture(f"{context} story")
        await ann.tab_to("#complete")
        await ann.page.keyboard.press("Enter")
        await ann.is_in("Completed")
        await expect(ann.page.locator("#complete")).to_be_disabled()
        await expect(ann.page.locator("#cancel")).to_be_disabled()
        await ann.is_whole()


async def child_and_back(ann: Surface) -> None:
    """Open the sub-task, talk to it, complete it, and come back to where one was."""
    parent = ann.page.url
    if await ann.page.locator("#summary").is_visible():
        await ann.tab_to("#summary")
        await ann.page.keyboard.press("Enter")
    await ann.words.fill("a draft")
    await ann.tab_to(".children a")
    await ann.page.keyboard.press("Enter")
    await expect(ann.page.locator("#parent")).to_contain_text("‹")
    assert ann.page.url != parent
    await ann.write("What do you see?")
    await ann.shows("You said: What do you see?")
    await ann.tab_to("#complete")
    await ann.page.keyboard.press("Enter")
    await ann.is_in("Completed")
    await ann.page.go_back()
    await expect(ann.words).to_have_value("a draft")
    assert ann.page.url == parent
    await ann.words.fill("")


@pytest.mark.parametrize("context", CONTEXTS)
async def test_axe_finds_nothing_and_nothing_scrolls_sideways(browser: Browser, shop: Served, context: str) -> None:
    axe = (npm_folder(HERE / "package.json") / "node_modules" / "axe-core" / "axe.min.js").read_text()

    async def look(surface: Surface, name: str) -> None:
        await surface.page.evaluate(axe)
        found = await surface.page.evaluate("axe.run().then(({violations}) => violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == [], name
        await surface.is_whole()
        await surface.picture(f"{context} {name}")

    async with opened(browser, shop, **CONTEXTS[context]) as ann:
        await ann.is_in("Not started")
        await look(ann, "empty")
        await ann.words.press_sequentially("/")
        await expect(ann.page.locator("#commands li").first).to_be_visible()
        await look(ann, "commands")
        await ann.words.fill("")
        await ann.write("My kettle arrived broken. It is order A-17.")
        await ann.is_in("Input required · Waiting for your answer")
        await look(ann, "question")
        if await ann.page.locator("#menu").is_visible():
            await ann.page.locator("#menu").click()
            await look(ann, "menu")
            await ann.page.keyboard.press("Escape")
        await ann.page.locator("#about").evaluate("(about) => { about.open = true; }")
        await look(ann, "about")


async def test_axe_finds_nothing_in_markdown_and_hostile_markdown_does_nothing(
    browser: Browser, served: Served
) -> None:
    axe = (npm_folder(HERE / "package.json") / "node_modules" / "axe-core" / "axe.min.js").read_text()
    async with opened(browser, served) as ann:
        asked: list[str] = []
        ann.page.on("request", lambda request: asked.append(request.url))
        await ann.write(f"echo {HOSTILE}")
        await ann.shows("The end of it.")
        await ann.is_in("Input required · Your turn")
        assert await ann.page.evaluate("window.pwned") is None
        assert all(url.startswith(served.url) for url in asked), asked
        reply = ann.page.locator("#items .agent").last
        assert await reply.locator("script, iframe, object, embed, style, form, svg, video").count() == 0
        hrefs = await reply.locator("a").evaluate_all("(links) => links.map((link) => link.protocol)")
        assert set(hrefs) <= {"http:", "https:", "mailto:"}
        attributes = await reply.evaluate(
            "(root) => [...root.querySelectorAll('*')].flatMap((node) => node.getAttributeNames())"
        )
        assert not [name for name in attributes if name.startswith("on") or name in ("style", "srcdoc")]
        await ann.page.evaluate(axe)
        found = await ann.page.evaluate("axe.run().then(({violations}) => violations)")
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found] == []
        await ann.is_whole()


async def test_markdown_is_shown_as_such_and_code_can_be_copied(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await ann.write("echo # Title\n\n- **one**\n\n```python\nprint(1)\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |")
        reply = ann.page.locator("#items .agent").last
        await expect(reply.locator("h3")).to_have_text("Title")
        await expect(reply.locator("li strong")).to_have_text("one")
        await expect(reply.locator("td").first).to_have_text("1")
        await reply.locator("button.copy").click()
        assert (await ann.page.evaluate("navigator.clipboard.readText()")).strip() == "print(1)"


async def test_slash_commands_are_offered_chosen_and_run_by_keys(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.words.press_sequentially("/st")
        await expect(ann.page.locator("#commands li")).to_have_count(1)
        active = await ann.words.get_attribute("aria-activedescendant")
        assert active == "command-status"
        await ann.page.keyboard.press("Escape")
        await expect(ann.page.locator("#commands")).to_be_hidden()
        await ann.words.press_sequentially("a")
        await ann.page.keyboard.press("Tab")
        await expect(ann.words).to_have_value("/status")
        await ann.page.keyboard.press("Enter")
        await ann.shows("Model: scripted")
        await expect(ann.page.locator("#items .command .head")).to_have_text("/status")
        await ann.words.press_sequentially("/")
        await ann.page.keyboard.press("ArrowDown")
        await ann.page.keyboard.press("Enter")
        await expect(ann.words).to_have_value("/effort ")
        await ann.page.keyboard.type("high")
        await ann.page.keyboard.press("Enter")
        await ann.shows("high")
        await expect(ann.page.locator("#facts")).to_contain_text("Effort high")


async def test_enter_sends_shift_enter_breaks_and_a_composition_does_neither(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.words.press_sequentially("one")
        await ann.page.keyboard.press("Shift+Enter")
        await ann.page.keyboard.type("two")
        await expect(ann.words).to_have_value("one\ntwo")
        await ann.words.dispatch_event("keydown", {"key": "Enter", "isComposing": True})
        await expect(ann.words).to_have_value("one\ntwo")
        await ann.page.keyboard.press("Enter")
        await ann.shows("1: one")
        await ann.page.locator("#talk").focus()
        await ann.page.keyboard.press("/")
        await expect(ann.words).to_be_focused()
        await expect(ann.words).to_have_value("")


async def test_send_becomes_stop_while_a_turn_runs_and_messages_wait(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.write("take your time")
        await ann.is_in("Working")
        await expect(ann.page.locator("#send")).to_have_text("Stop")
        await ann.words.press_sequentially("meanwhile")
        await expect(ann.page.locator("#send")).to_have_text("Send")
        await ann.page.keyboard.press("Enter")
        await expect(ann.page.locator("#items .mark", has_text="queued")).to_have_count(1)
        await ann.page.locator("#send").click()
        await ann.shows("meanwhile")
        await ann.is_in("Input required · Your turn")
        await expect(ann.page.locator("#send")).to_have_text("Send")


async def test_cancel_asks_once_in_place_and_a_message_goes_on_in_the_same_context(
    browser: Browser, served: Served
) -> None:
    async with opened(browser, served) as ann:
        await ann.write("hello")
        await ann.is_in("Input required · Your turn")
        first = ann.page.url
        cancel, keep = ann.page.locator("#cancel"), ann.page.locator("#keep")
        await cancel.press("Enter")
        await expect(cancel).to_have_text("Really cancel")
        await keep.press("Enter")
        await expect(cancel).to_have_text("Cancel")
        await cancel.press("Enter")
        await cancel.press("Escape")
        await expect(cancel).to_have_text("Cancel")
        await ann.is_in("Input required · Your turn")
        await cancel.press("Enter")
        await cancel.press("Enter")
        await ann.is_in("Canceled")
        await ann.write("and again")
        await ann.shows("1: and again")
        assert ann.page.url != first


async def test_what_is_pressed_twice_happens_once_and_is_no_trouble(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.words.fill("hello")
        await ann.page.locator("#send").dblclick()
        await ann.is_in("Input required · Your turn")
        assert await ann.texts() == ["hello", "1: hello"]
        await ann.page.locator("#complete").dblclick()
        await ann.is_in("Completed")
        await ann.write("a new one")
        await ann.shows("1: a new one")
        await expect(ann.page.locator("#trouble")).to_be_hidden()


async def test_an_address_that_leads_nowhere_says_so_and_takes_no_words_away(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.is_in("Not started")
        await ann.page.evaluate("location.hash = '#/t/nowhere'")
        await expect(ann.page.locator("#trouble")).to_contain_text("nowhere")
        await ann.write("into the void")
        await expect(ann.words).to_have_value("into the void")
        assert await ann.texts() == []


async def test_an_unresolved_sub_task_refuses_completion_in_words_and_loses_nothing(
    browser: Browser, served: Served
) -> None:
    async with opened(browser, served) as ann:
        await ann.write("/sub-task look into it")
        await ann.shows("is open and")
        await ann.words.fill("half a thought")
        await ann.page.locator("#complete").click()
        await expect(ann.page.locator("#trouble")).to_contain_text("sub-task")
        await expect(ann.words).to_have_value("half a thought")
        await ann.page.reload()
        await expect(ann.words).to_have_value("half a thought")


async def test_what_another_surface_does_shows_without_a_reload(browser: Browser, served: Served) -> None:
    async with (
        opened(browser, served) as ann,
        connect(Address(served.url, token=served.token), "ann") as client,
    ):
        await ann.write("from the page")
        await ann.is_in("Input required · Your turn")
        task_id = ann.page.url.rpartition("/")[2]
        await client.send("from elsewhere", task_id=task_id)
        await ann.shows("from elsewhere", "2: from elsewhere")
        async with opened(browser, served) as other:
            line = other.page.locator(f'#task-list a[href="#/t/{task_id}"]')
            await expect(line).to_contain_text("Your turn")
            await ann.page.locator("#complete").click()
            await expect(line).to_contain_text("Completed")
        assert (await client.task(task_id)).state is TaskState.COMPLETED
        second = await client.send("a second task")
        await expect(ann.page.locator(f'#task-list a[href="#/t/{second.task.task_id}"]')).to_contain_text("Your turn")
        await ann.page.locator(f'#task-list a[href="#/t/{second.task.task_id}"]').click()
        await ann.shows("1: a second task")
        await client.complete(second.task.task_id)
        await ann.is_in("Completed")


async def test_people_are_invited_and_those_who_may_not_are_told_so(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.write("hello")
        await ann.is_in("Input required · Your turn")
        await ann.page.get_by_label("Whom to invite").fill("eve")
        await ann.page.get_by_role("button", name="Invite").click()
        await expect(ann.page.locator("#facts")).to_contain_text("eve · watcher")
        path = "#" + ann.page.url.partition("#")[2]
    async with opened(browser, served, path=path) as eve:
        eve.may_complain = lambda words: "401" in words
        await eve.page.locator("#token").fill(served.token)
        await eve.page.locator("#participant").fill("eve")
        await eve.page.keyboard.press("Enter")
        await eve.shows("1: hello")
        await eve.write("may I?")
        await expect(eve.page.locator("#trouble")).to_contain_text("watcher")
        await expect(eve.words).to_have_value("may I?")


async def test_signing_in_asks_for_a_credential_and_says_what_is_wrong_with_it(
    browser: Browser, served: Served
) -> None:
    async with opened(browser, served, path="") as ann:
        ann.may_complain = lambda words: "401" in words
        await ann.page.locator("#token").fill("wrong")
        await ann.page.keyboard.press("Enter")
        await expect(ann.page.locator("#sign-in-words")).not_to_have_text("Sign in to go on.")
        await ann.page.locator("#token").fill(served.token)
        await ann.page.keyboard.press("Enter")
        await ann.is_in("Not started")
        assert served.token not in ann.page.url
        await expect(ann.page.locator("#who")).to_have_text("ann")
        await ann.page.reload()
        await ann.is_in("Not started")
        await ann.page.locator("#sign-out").click()
        await expect(ann.page.locator("#token")).to_be_visible()


@pytest.mark.timeout(900 if IS_SOAK else 180)
async def test_a_long_conversation_opens_at_its_end_and_older_words_come_on_scrolling_up(
    browser: Browser, served: Served
) -> None:
    async with http_client(served) as http:
        task_id = (await send(http, user_message("/status m0"), at_once=True))["id"]
        for number in range(1, LONG):
            await send(http, user_message(f"/status m{number}", task_id), at_once=True)
    async with opened(browser, served) as ann:
        await ann.is_in("Not started")
        started = time.monotonic()
        await ann.page.evaluate("location.hash = " + json.dumps(f"#/t/{task_id}"))
        await ann.shows(f"/status m{LONG - 1}")
        opened_in = time.monotonic() - started
        assert await ann.page.locator("#items > article").count() == 200
        seen = 0
        while "/status m0" not in (texts := await ann.texts()):
            assert len(texts) > seen
            seen = len(texts)
            await ann.page.locator("#talk").evaluate("(talk) => { talk.scrollTop = 0; }")
            await expect(ann.page.locator("#items > article")).not_to_have_count(seen)
        said = [text for text in texts if text.startswith("/status")]
        assert said == [f"/status m{number}" for number in range(LONG)]
        await expect(ann.page.locator("#latest")).to_be_visible()
        await ann.page.locator("#latest").click()
        await expect(ann.page.locator("#latest")).to_be_hidden()
        slowest = await slowest_frame_while(ann, "echo " + "word and word, " * 2_000 + "end.", "end.")
        print(f"{len(texts)} messages: opened in {opened_in:.2f} s, slowest frame {slowest:.0f} ms while a reply grew")
        assert not IS_SOAK or (opened_in < 2 and slowest < 500)


async def slowest_frame_while(surface: Surface, text: str, end: str) -> float:
    """Send a message, wait for the end of its reply, and tell how long the page stood still at most, in ms."""
    await surface.page.evaluate(
        "() => { let last = performance.now(); window.slowest = 0; const frame = (now) => {"
        " window.slowest = Math.max(window.slowest, now - last); last = now; requestAnimationFrame(frame); };"
        " requestAnimationFrame(frame); }"
    )
    await surface.write(text)
    await expect(surface.page.locator("#items .agent").last).to_contain_text(end)
    await surface.is_in("Input required · Your turn")
    return await surface.page.evaluate("window.slowest")


async def test_a_killed_gateway_is_told_the_draft_is_kept_and_what_was_missed_is_shown_once(
    browser: Browser, tmp_path: Path
) -> None:
    home, server = tmp_path / "home", {"bind": f"127.0.0.1:{free_port()}"}
    async with serving(home, server, HERE / "script.toml") as first, opened(browser, first) as ann:
        ann.may_complain = lambda words: "Failed to load resource" in words or "ERR_" in words
        await ann.write("one")
        await ann.is_in("Input required · Your turn")
        await ann.words.fill("a draft")
        task_id = ann.page.url.rpartition("/")[2]
        first.signal(signal.SIGKILL)
        await expect(ann.page.locator("#link")).to_have_text("Reconnecting …", timeout=5_000)
        async with serving(home, server, HERE / "script.toml") as again:
            async with connect(Address(again.url, token=again.token), "ann") as client:
                await client.send("two", task_id=task_id)
            await ann.shows("2: two")
            await expect(ann.page.locator("#link")).to_have_text("")
            assert await ann.texts() == ["one", "1: one", "two", "2: two"]
            await expect(ann.words).to_have_value("a draft")


async def test_a_message_that_is_written_while_the_gateway_is_away_is_delivered_once(
    browser: Browser, tmp_path: Path
) -> None:
    home, server = tmp_path / "home", {"bind": f"127.0.0.1:{free_port()}"}
    async with serving(home, server, HERE / "script.toml") as first, opened(browser, first) as ann:
        ann.may_complain = lambda words: "Failed to load resource" in words or "ERR_" in words
        await ann.write("one")
        await ann.is_in("Input required · Your turn")
        first.signal(signal.SIGKILL)
        await expect(ann.page.locator("#link")).to_have_text("Reconnecting …")
        await ann.write("two")
        await expect(ann.page.locator("#items .mark", has_text="sending")).to_have_count(1)
        async with serving(home, server, HERE / "script.toml"):
            await ann.shows("2: two")
            assert await ann.texts() == ["one", "1: one", "two", "2: two"]


async def test_a_hidden_tab_lets_go_of_its_stream_and_shows_what_it_missed(browser: Browser, served: Served) -> None:
    async with (
        opened(browser, served) as ann,
        connect(Address(served.url, token=served.token), "ann") as client,
    ):
        await ann.write("one")
        await ann.shows("1: one")
        task_id = ann.page.url.rpartition("/")[2]
        await hide(ann, "hidden")
        await client.send("two", task_id=task_id)
        assert await ann.texts() == ["one", "1: one"]
        await hide(ann, "visible")
        await ann.shows("2: two")
        assert await ann.texts() == ["one", "1: one", "two", "2: two"]


async def hide(surface: Surface, state: str) -> None:
    """Let the tab believe that it is hidden, or in sight again."""
    await surface.page.evaluate(
        "(state) => { Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )


async def test_the_phone_has_the_list_behind_a_button(browser: Browser, served: Served) -> None:
    async with opened(browser, served, **PHONE) as ann:
        await ann.write("on the phone")
        await ann.shows("1: on the phone")
        await expect(ann.page.locator("#tasks")).to_be_hidden()
        await ann.page.locator("#menu").click()
        await expect(ann.page.locator("#task-list")).to_contain_text("on the phone")
        await ann.page.locator("#new").click()
        await expect(ann.page.locator("#tasks")).to_be_hidden()
        await ann.is_in("Not started")


async def test_light_and_dark_can_be_chosen_and_are_kept(browser: Browser, served: Served) -> None:
    async with opened(browser, served) as ann:
        await ann.is_in("Not started")
        color = "getComputedStyle(document.body).backgroundColor"
        light = await ann.page.evaluate(color)
        await ann.page.locator("#theme").click()
        await ann.page.locator("#theme").click()
        await expect(ann.page.locator("#theme")).to_have_text("Theme: dark")
        dark = await ann.page.evaluate(color)
        assert dark != light
        await ann.page.reload()
        await ann.is_in("Not started")
        assert await ann.page.evaluate(color) == dark


async def test_how_a_supervised_task_stands_is_shown(browser: Browser, served: Served) -> None:
    async with (
        opened(browser, served) as ann,
        connect(Address(served.url, token=served.token), "ann") as client,
    ):
        await client.give("first", "bob")
        queued = await client.give("second", "bob")
        await ann.page.evaluate("location.hash = " + json.dumps(f"#/t/{queued.task_id}"))
        await ann.is_in("Queued · place 1 in the queue")
        await expect(ann.page.locator("#facts")).to_contain_text("Worker: bob")
        await expect(ann.page.locator(f'#task-list a[href="#/t/{queued.task_id}"]')).to_contain_text("place 1")


async def test_an_answer_comes_from_the_page_while_another_page_watches(browser: Browser, shop: Served) -> None:
    async with opened(browser, shop) as ann:
        await ann.write("My kettle arrived broken. It is order A-17.")
        await ann.is_in("Input required · Waiting for your answer")
        path = "#" + ann.page.url.partition("#")[2]
        async with opened(browser, shop) as other:
            await other.is_in("Not started")
            await other.page.evaluate("location.hash = " + json.dumps(path))
            await expect(other.page.locator("#question")).to_be_visible()
            await ann.page.locator("#choices button").first.click()
            await other.is_in("Input required · Waiting for your approval")
            await other.page.locator("#choices button").first.click()
            await ann.shows("Done. I paid back")
            await expect(ann.page.locator("#question")).to_be_hidden()
