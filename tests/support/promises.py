"""Sentences of the documents that promise a behaviour, and their tests: `tests/promises.toml`.

`python -m tests.support.promises` puts the file in the order of the documents and gives the tests
of a sentence that has changed to the one that is most like it. Read what it prints.

A sentence is one of a paragraph or of a list, or a row of a table. Headings, code, images and
generated blocks have none. `PROMISING` recognises a promise by its words.
"""

import difflib
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FILE = ROOT / "tests/promises.toml"
PROMISING = re.compile(
    r"\b(?:never|always|exactly|only|must|once|cannot|nothing|none|every|refused?s?|waits?|stalls?"
    r"|stalled|dead letters?|fenced|at (?:most|least)|kept|lost|until|without"
    r"|no (?!longer\b)\w+)\b",
    re.IGNORECASE,
)
Witnesses = dict[str, list[str] | str]
"""Sentence -> ids of its tests, or why it has none."""
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
    for path in sorted((ROOT / "docs/adr").glob("[0-9]*.md")):
        decision = path.read_text(encoding="utf-8").partition("\n## Decision\n")[2]
        texts[str(path.relative_to(ROOT))] = decision.partition("\n## ")[0]
    return texts


def promises() -> dict[str, Witnesses]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def named_tests() -> frozenset[str]:
    """The functions of all tests that show a promise."""
    listed = (tests for lines in promises().values() for tests in lines.values())
    tests = (test for tests in listed if isinstance(tests, list) for test in tests)
    return frozenset(test.partition("[")[0] for test in tests)


def sentences(text: str) -> list[str]:
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
    return f"{_quoted(sentence)} = " + (
        "[" + ", ".join(map(_quoted, witnesses)) + "]"
        if isinstance(witnesses, list)
        else _quoted(witnesses)
    )


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def like(sentence: str, others: Iterable[str]) -> str | None:
    return next(iter(difflib.get_close_matches(sentence, others, n=1, cutoff=0.5)), None)


def faults(document: str, text: str, listed: Witnesses) -> Iterator[str]:
    """What is wrong with a document's part of the file, each with the line that repairs it."""
    said = sentences(text)
    gone = [sentence for sentence in listed if sentence not in said]
    for sentence in said:
        if sentence in listed or not PROMISING.search(sentence):
            continue
        was = like(sentence, gone)
        if was is None:
            yield f'["{document}"] lacks:\n{line(sentence, ["tests/…::test_…"])}'
            continue
        gone.remove(was)
        yield (
            f'["{document}"] lacks:\n{line(sentence, listed[was])}\n'
            f"  in place of:\n{line(was, listed[was])}"
        )
    for sentence in gone:
        old = line(sentence, listed[sentence])
        yield f'["{document}"] has a line whose sentence is gone:\n{old}'


def followed(text: str, listed: Witnesses) -> Witnesses:
    """The lines of a document as its sentences are now; those that are new have none."""
    said = dict.fromkeys(sentences(text))
    gone = [sentence for sentence in listed if sentence not in said]
    now: Witnesses = {}
    for sentence in said:
        was = sentence if sentence in listed else None
        if was is None and PROMISING.search(sentence):
            was = like(sentence, gone)
        if was is not None:
            now[sentence] = listed[was]
        if was in gone:
            gone.remove(was)
            sys.stdout.write(f"{was}\n  is now\n{sentence}\n\n")
    return now


def main() -> None:
    """Write the file anew."""
    listed = {_number(name): lines for name, lines in promises().items()}
    parts = [FILE.read_text(encoding="utf-8").partition("\n")[0] + "\n"]
    for name, text in documents().items():
        lines = followed(text, listed.get(_number(name), {}))
        if lines:
            parts.append("\n".join([f'["{name}"]', *(line(*each) for each in lines.items()), ""]))
    FILE.write_text("\n".join(parts), encoding="utf-8")


def _number(name: str) -> str:
    return re.sub(r"(adr/\d{4}).*", r"\1", name)


if __name__ == "__main__":
    main()
