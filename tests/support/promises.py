"""Sentences of the documents that promise a behaviour, and their tests: `tests/promises.toml`.

A sentence is one of a paragraph or of a list, or a row of a table. Headings, code, images and
generated blocks have none. `PROMISING` recognises a promise by its words.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/promises.toml"
PROMISING = re.compile(
    r"\b(?:never|always|exactly|only|must|once|cannot|nothing|none|every|refused?s?|waits?|stalls?"
    r"|stalled|dead letters?|fenced|at (?:most|least)|kept|lost|until|without"
    r"|no (?!longer\b)\w+)\b",
    re.IGNORECASE,
)
UNTESTED, NO_PROMISE = "untested: ", "no promise: "
_HIDDEN = re.compile(
    r"^```.*?^```$|<!-- generated.*?<!-- end -->|<!--.*?-->|^(?: {4}|\t)\S.*?$|^!\[.*?\)$"
    r"|^\|[^\n]*\n(?=\|[-| :]+\|$)|^\|[-| :]+\|$",
    re.MULTILINE | re.DOTALL,
)
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
_END = re.compile(r"(?:(?<=[.!?])|(?<=[.!?]\*\*))\s+(?=[\"'(`*\[A-Z0-9])")
_LINK = re.compile(r"\[[^\]]*\]\([^)]*\)[.,]?")


def documents() -> dict[str, str]:
    """Each document that may promise something, with the part of its text that does."""
    names = ["README.md", "ARCHITECTURE.md", "deploy/RUNBOOK.md", "deploy/README.md"]
    for folder in ("explanation", "how-to", "tutorial"):
        names += sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs" / folder).glob("*"))
    reference = ("limits", "outputs", "event-time", "formats", "contracts", "types", "language")
    reference += ("statements", "connectors")
    names += [f"docs/reference/{name}.md" for name in reference]
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in names}
    packages = re.compile(r"^## Packages$.*?(?=^## )", re.MULTILINE | re.DOTALL)
    texts["ARCHITECTURE.md"] = packages.sub("", texts["ARCHITECTURE.md"])
    return texts


def promises() -> dict[str, dict[str, list[str] | str]]:
    """Document -> sentence -> ids of its tests, or why it has none."""
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def sentences(text: str) -> list[str]:
    """Every sentence of a Markdown text in its order; white space is made single blanks."""
    return [each for block in _blocks(text) for each in _cut(block) if _LINK.sub("", each).strip()]


def _blocks(text: str) -> Iterator[str]:
    lines: list[str] = []
    for line in [*_HIDDEN.sub("", text).splitlines(), ""]:
        begins = line.startswith(("#", "|")) or not line.strip() or _ITEM.match(line)
        if begins and lines:
            yield " ".join(" ".join(lines).split())
            lines = []
        if line.strip() and not line.startswith("#"):
            lines.append(_ITEM.sub("", line, count=1) if begins else line)


def _cut(block: str) -> list[str]:
    return [block] if block.startswith("|") else _END.split(block)


def line(sentence: str, witnesses: list[str] | str) -> str:
    """The line of the file that says which tests a sentence has."""
    return f"{_quoted(sentence)} = " + (
        "[" + ", ".join(map(_quoted, witnesses)) + "]"
        if isinstance(witnesses, list)
        else _quoted(witnesses)
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def faults(document: str, text: str, listed: dict[str, list[str] | str]) -> Iterator[str]:
    """What is wrong with a document's part of the file, each with the line that repairs it."""
    said = sentences(text)
    gone = {sentence for sentence in listed if sentence not in said}
    for sentence in said:
        if sentence in listed or not PROMISING.search(sentence):
            continue
        [like, *_] = [*difflib.get_close_matches(sentence, gone, n=1, cutoff=0.5), ""]
        gone.discard(like)
        yield f'["{document}"] lacks:\n{line(sentence, listed.get(like, ["tests/…::test_…"]))}' + (
            f"\n  in place of:\n{line(like, listed[like])}" if like else ""
        )
    for sentence in sorted(gone):
        old = line(sentence, listed[sentence])
        yield f'["{document}"] has a line whose sentence is gone:\n{old}'
