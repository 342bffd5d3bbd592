"""The page's files: everybody may read them, a browser keeps them, and nothing else may run on them (WEBUI)."""

import httpx
import pytest

from tests.integration.gateway.served import Gateway

POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "form-action": "'none'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}


async def get(gateway: Gateway, path: str, **headers: str) -> httpx.Response:
    """Ask as a browser does: without any credential."""
    async with httpx.AsyncClient(base_url=gateway.url) as http:
        return await http.get(path, headers=headers)


async def test_the_page_is_served_under_its_policy_to_everybody(gateway: Gateway) -> None:
    answer = await get(gateway, "/ui/")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    ("name", "kind"), [("app.js", "text/javascript"), ("style.css", "text/css"), ("icon.svg", "image/svg+xml")]
)
async def test_each_file_has_its_type_and_is_not_sent_twice(gateway: Gateway, name: str, kind: str) -> None:
    answer = await get(gateway, f"/ui/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith(kind)
    for known in (answer.headers["etag"], f'"other", W/{answer.headers["etag"]}'):
        again = await get(gateway, f"/ui/{name}", **{"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["content-security-policy"] == answer.headers["content-security-policy"]


@pytest.mark.parametrize("name", ["nix.js", "..%2fpages.py", "static", "pages.py", "__init__.py", "%00"])
async def test_only_the_pages_own_files_are_served(gateway: Gateway, name: str) -> None:
    answer = await get(gateway, f"/ui/{name}")
    assert answer.status_code == 404
    assert answer.headers["content-security-policy"]


@pytest.mark.parametrize("path", ["/", "/ui"])
async def test_the_bare_address_leads_to_the_page(gateway: Gateway, path: str) -> None:
    answer = await get(gateway, path)
    assert (answer.status_code, answer.headers["location"]) == (307, "/ui/")


@pytest.mark.parametrize("path", ["/rpc", "/_monitor", "/rest/tasks", "/ui/../_monitor", "/ui/x/y"])
async def test_nothing_behind_the_page_is_open(gateway: Gateway, path: str) -> None:
    assert (await get(gateway, path)).status_code in (401, 404)
    assert (await get(gateway, "/_monitor")).status_code == 401


async def test_another_host_is_not_served_the_page_either(gateway: Gateway) -> None:
    assert (await get(gateway, "/ui/", Host="evil.example")).status_code == 403
