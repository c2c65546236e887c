"""`/` and `/ui/…`: the status page, plain files of our own; what it shows it asks the REST API.

The page has no data in it, so that it can be had without a token: it asks for one on a 401.
"""

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from service.api.http.access import PUBLIC

DIRECTORY = Path(__file__).resolve().parents[2] / "page"
_INDEX = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # Nothing inline, nothing from elsewhere, no markup made of strings.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
router = APIRouter(include_in_schema=False, dependencies=[PUBLIC])


@router.get("/")
def show_page() -> Response:
    """The status page."""
    return _file(_INDEX)


@router.get("/ui/{name}")
def show_asset(name: str) -> Response:
    """A file of the page; a name that is not in its directory never becomes a path."""
    if name == _INDEX or name not in asset_names():
        raise HTTPException(404)
    return _file(name)


def asset_names() -> set[str]:
    """The files of the page."""
    return {path.name for path in DIRECTORY.iterdir() if path.suffix in _MEDIA_TYPES}


def _file(name: str) -> Response:
    path = DIRECTORY / name
    media_type = _MEDIA_TYPES[path.suffix]
    return Response(path.read_bytes(), media_type=media_type, headers=_HEADERS)
