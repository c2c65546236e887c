"""Data is cut into lines at line feeds only: strings of JSON hold other ends of lines as they are.

Python cuts at U+2028, U+2029, U+0085 and further characters where it is asked for lines of text,
and a file opened as text at carriage returns too. Data goes through
`joins.durable.checkpoint.json_lines`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from joins.durable.checkpoint import json_lines

ROOT = Path(__file__).parents[1]
CUTTING = frozenset({"splitlines", "readline", "readlines", "iter_lines", "aiter_lines"})
STREAMS = frozenset({"stdin", "stdout", "stderr"})
# Where lines are of a text that is for people, or of a stream whose writer escapes all but ASCII.
ALLOWED = {
    "joins/adapters/files/readers.py:_lines": "bytes, which end at line feeds only",
    "joins/adapters/datagen.py:main": "one line of our own json.dumps",
    "joins/adapters/process/sessions.py:first_line": "one line of our own json.dumps",
    "joins/adapters/process/sessions.py:listen": "lines of our own json.dumps",
    "service/cli/output.py:say_error": "an excerpt of a script, for a terminal",
}


def cuts(source: str) -> Iterator[str]:
    """The functions that ask for lines of text."""
    owner: dict[ast.AST, str] = {}
    if not any(word in source for word in (*CUTTING, *STREAMS, "open(")):
        return
    tree = ast.parse(source)
    for node in ast.walk(tree):
        name = node.name if isinstance(node, ast.FunctionDef) else owner.get(node, "")
        owner.update(dict.fromkeys(ast.iter_child_nodes(node), name))
    opened = {
        item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.With)
        for item in node.items
        if _opens(item.context_expr) and isinstance(item.optional_vars, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CUTTING:
            yield owner[node]
        if isinstance(node, ast.For | ast.comprehension):
            over = node.iter
            is_stream = isinstance(over, ast.Attribute) and over.attr in STREAMS
            is_file = isinstance(over, ast.Name) and over.id in opened
            if is_stream or is_file or _opens(over):
                yield owner[node]


def _opens(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Attribute):  # of a path; a method of the object itself is our own
        return called.attr == "open" and ast.unparse(called.value) != "self"
    return isinstance(called, ast.Name) and called.id == "open"


CODE = {
    "lines_of_a_text": "def f(t):\n    return [g(x) for x in t.splitlines()]",
    "a_stream": "def f():\n    for x in sys.stdin:\n        pass",
    "an_opened_file": "def f(p):\n    with p.open() as file:\n        return [x for x in file]",
    "a_file_without_a_name": "def f(p):\n    for x in open(p):\n        pass",
    "an_answer": "def f(a):\n    return list(a.iter_lines())",
}


@pytest.mark.parametrize("code", CODE.values(), ids=CODE)
def test_whatever_asks_for_lines_of_text_is_found(code):
    assert list(cuts(code)) == ["f"]


def test_only_texts_for_people_are_cut_like_text():
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for layer in ("service", "joins", "watermark")
        for path in (ROOT / layer).rglob("*.py")
        for name in cuts(path.read_text(encoding="utf-8"))
    }
    assert found == ALLOWED.keys()


def test_a_value_of_json_may_have_what_else_ends_a_line_of_text():
    text = '{"a":"b\u2028c\u2029d\u0085e\x0bf"}'
    assert list(json_lines(f"{text}\n\n{text}".encode())) == [text.encode()] * 2
