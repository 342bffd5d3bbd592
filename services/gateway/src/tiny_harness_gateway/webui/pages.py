"""Serves the page's files from memory, under a policy that lets nothing else run (WEBUI: headers)."""

import hashlib
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

PAGE_PATH: Final = "/ui/"

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'none'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}
INDEX: Final = "index.html"


class Pages:
    """The page and its modules. They hold no secret, so nobody signs in to read them."""

    def __init__(self) -> None:
        folder = files("tiny_harness_gateway.webui") / "static"
        self._files = {file.name: file.read_bytes() for file in folder.iterdir() if _type_of(file)}
        self._tags = {name: f'"{hashlib.sha256(body).hexdigest()[:32]}"' for name, body in self._files.items()}

    @property
    def routes(self) -> list[Route]:
        """Routes that come first: the A2A SDK's swallow what stands behind them."""
        methods = ["GET", "HEAD"]
        return [
            Route("/", self._to_page, methods=methods),
            Route(PAGE_PATH.rstrip("/"), self._to_page, methods=methods),
            Route(f"{PAGE_PATH}{{name:path}}", self._serve, methods=methods),
        ]

    async def _to_page(self, _request: Request) -> Response:
        return RedirectResponse(PAGE_PATH, 307, HEADERS)

    async def _serve(self, request: Request) -> Response:
        """Answer a file, or 304 to a browser that has it."""
        name = request.path_params["name"] or INDEX
        body = self._files.get(name)
        if body is None:
            return Response("There is no such file.", 404, HEADERS, "text/plain")
        headers = {**HEADERS, "ETag": self._tags[name]}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if headers["ETag"] in known:
            return Response(status_code=304, headers=headers)
        return Response(body, headers={**headers, "Content-Type": TYPES[name.rpartition(".")[2]]})


def _type_of(file: Traversable) -> str | None:
    return TYPES.get(file.name.rpartition(".")[2])
