"""What MkDocs does besides: documents outside of `docs/` become pages, links to them links."""

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "explanation/architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "deploy/README.md": "operation/deploying.md",
    "deploy/RUNBOOK.md": "operation/runbook.md",
}
WIDE = ("README.md", "ARCHITECTURE.md")
"""Documents whose picture needs the room of the table of contents."""

_SOURCES = {page: source for source, page in OUTSIDE.items()}
_LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LIST = re.compile(r"^(?!- |\d+\. |\s|[|#>])(.+\n)(?=(?:- |1\. )\S)", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Take the documents outside of `docs/` in."""
    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links as the site needs them; a list may follow its paragraph at once, as elsewhere."""
    uri = page.file.src_uri
    source = _SOURCES.get(uri, f"docs/{uri}")
    if source in WIDE:
        page.meta["hide"] = ["toc"]

    def link(found: re.Match[str]) -> str:
        text, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        name, _, anchor = target.partition("#")
        meant = posixpath.normpath(posixpath.join(posixpath.dirname(source), name))
        place = OUTSIDE.get(meant, meant.removeprefix("docs/"))
        if place == meant:
            return text  # a file that is no page
        way = posixpath.relpath(place, posixpath.dirname(uri) or ".")
        return f"[{text}]({way}{'#' if anchor else ''}{anchor})"

    parts = _FENCE.split(markdown)
    parts[::2] = [_LIST.sub(r"\1\n", _LINK.sub(link, part)) for part in parts[::2]]
    return "".join(parts)
