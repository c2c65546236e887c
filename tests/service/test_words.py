"""FLIP-326's own words stay in the page's Details tab and in REST's typed fields.

Everything else that a person reads says stream, table, copy: errors, hints, help, the page.
"""

import ast
import re

import pytest
import typer
from typer.main import get_command

from service.api.routes.program import DIRECTORY
from service.cli.main import app
from tests.support.hints import PACKAGES, ROOT

PRIVATE = re.compile(r"\b(?:probe|gate|valve|build side|build batch)(?:s|es)?\b", re.IGNORECASE)
OF_REST = ("service/schemas/", "service/api/routes/flink.py")
NO_TEXT = {
    "joins/job/session.py",  # names of Spark's pools
    "joins/job/temporal_join.py",  # an event of the log
    "joins/plan/stream_topics.py",  # a file's name
}
OF_DETAILS = {"details.js", "progress.js", "event_time.js"}
_FILLED = re.compile(r"\$\{[^{}]*\}")
_QUOTED = re.compile(r'"([^"\n]*)"|`([^`\n]*)`')


def texts_of(source):
    """Texts of a Python file with more than a word; docstrings are for readers of the code."""
    tree = ast.parse(source)
    statements = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in statements and " " in node.value.strip():
            yield node.value


def files():
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = str(path.relative_to(ROOT))
            if not name.startswith(OF_REST) and name not in NO_TEXT:
                yield name


def test_no_error_and_no_hint_has_a_private_word():
    read = {name: texts_of((ROOT / name).read_text(encoding="utf-8")) for name in files()}
    assert [
        (name, text) for name, texts in read.items() for text in texts if PRIVATE.search(text)
    ] == []


@pytest.mark.parametrize(
    "name", sorted(path.name for path in DIRECTORY.glob("*.js") if path.name not in OF_DETAILS)
)
def test_no_text_of_the_page_has_a_private_word(name):
    source = _FILLED.sub("", (DIRECTORY / name).read_text(encoding="utf-8"))
    texts = (one or other for one, other in _QUOTED.findall(source))
    assert [text for text in texts if " " in text.strip() and PRIVATE.search(text)] == []


def helps(command, name="sluice"):
    """(command, help) of every command and each of its parameters."""
    yield name, command.help or ""
    yield from ((f"{name} {each.name}", getattr(each, "help", "") or "") for each in command.params)
    if isinstance(command, typer.core.TyperGroup):
        for word, each in command.commands.items():
            yield from helps(each, f"{name} {word}")


def test_no_help_has_a_private_word():
    known = dict(helps(get_command(app)))
    assert len(known) > 100
    assert {name: text for name, text in known.items() if PRIVATE.search(text)} == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    {
        "word": ("the probe waits", True),
        "several": ("two gates are open", True),
        "part_of_another_word": ("aggregate and investigate", False),
        "two_words": ("the build side is copied", True),
    }.values(),
)
def test_private_words_are_known(text, expected):
    assert bool(PRIVATE.search(text)) is expected
