"""Whether a test that a list names is there and runs."""

import ast
import functools
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEVER_RUN = ("skip", "xfail")


@functools.cache
def functions_of(path: Path) -> dict[str, bool]:
    """Names of the tests of a module, `Class::name` where they are methods; whether each runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module = any(isinstance(node, ast.Assign) and _is_off(node.value) for node in tree.body)
    found = {}
    for prefix, body in [("", tree.body), *((f"{c.name}::", c.body) for c in _classes(tree))]:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                off = module or any(map(_is_off, node.decorator_list))
                found[f"{prefix}{node.name}"] = not off
    return {name: runs for name, runs in found.items() if "test_" in name}


def _classes(tree: ast.Module) -> Iterable[ast.ClassDef]:
    return (node for node in tree.body if isinstance(node, ast.ClassDef))


def _is_off(mark: ast.expr) -> bool:
    names = (node.attr for node in ast.walk(mark) if isinstance(node, ast.Attribute))
    return any(name in NEVER_RUN for name in names)


def fault(test: str) -> str | None:
    """What is wrong with the id of a test, a case of SQL, or a contract of the imports."""
    name, _, function = test.partition("::")
    path = ROOT / name
    if not path.is_file():
        return f"{test}: there is no file {name}"
    if name == "pyproject.toml":  # `make check` keeps it
        known = f'name = "{function}"' in path.read_text(encoding="utf-8")
        return None if known else f"{test}: there is no such contract"
    if name.startswith("tests/service/sql/") and name.endswith(".sql"):  # a case
        return None
    runs = functions_of(path).get(function.partition("[")[0])
    if runs is None:
        return f"{test}: {name} has no such test"
    return None if runs else f"{test} is skipped or expected to fail"
