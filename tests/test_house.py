"""The rules of the house that a machine can keep: names, sizes, depth of inheritance, cycles.

What reads better otherwise says so in its own file, for one module, class or function, by a
comment with the reason: `# reads better long: …` or `# reads better deep: …`.
"""

import ast
import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.support.hints import PACKAGES, ROOT

EMPTY_WORDS = {"asked", "found", "given", "together", "told", "wanted"}
MOST_LINES_OF_MODULE = 500
MOST_LINES_OF_FUNCTION = 60
MOST_PUBLIC_METHODS = 12
MOST_PUBLIC_METHODS_WITH_A_REASON = 15
MOST_CLASSES_IN_A_LINE = 2
MOST_MODULES_IN_A_FOLDER = 20
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the product and its syntax tree."""

    name: str
    path: Path
    lines: list[str]
    tree: ast.Module
    every: list[ast.AST]

    def nodes(self, *kinds):
        return [node for node in self.every if isinstance(node, kinds)]

    def imports(self) -> Iterator[tuple[str, str, str]]:
        """(local name, module, name in it) of what is imported while the program runs."""
        typing = {
            each
            for node in self.nodes(ast.If)
            if ast.unparse(node.test).endswith("TYPE_CHECKING")
            for each in ast.walk(node)
        }
        for node in self.nodes(ast.Import, ast.ImportFrom):
            for alias in node.names if node not in typing else ():
                if isinstance(node, ast.Import):
                    yield alias.asname or alias.name, alias.name, ""
                else:
                    yield alias.asname or alias.name, node.module, alias.name

    def has_reason(self, how: str, node: ast.AST) -> bool:
        """Whether a comment inside of `node`, or of the module, says why it reads better so."""
        first, last = (1, len(self.lines))
        if not isinstance(node, ast.Module):
            first, last = node.lineno, node.end_lineno
        own = [line for line in self.lines[first - 1 : last] if f"# reads better {how}: " in line]
        indent = "" if isinstance(node, ast.Module) else " " * (node.col_offset + 4)
        return any(re.match(rf"{indent}# reads better {how}: \w", line) for line in own)


@cache
def modules(packages: tuple[str, ...] = PACKAGES) -> Mapping[str, Module]:
    every = {}
    for path in sorted(path for name in packages for path in (ROOT / name).rglob("*.py")):
        module = parsed(path)
        every[module.name] = module
    return every


def parsed(path: Path) -> Module:
    name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    text = path.read_text()
    tree = ast.parse(text)
    return Module(name, path, text.splitlines(), tree, list(ast.walk(tree)))


@cache
def classes() -> Mapping[tuple[str, str], tuple[Module, ast.ClassDef]]:
    return {
        (module.name, node.name): (module, node)
        for module in modules().values()
        for node in module.nodes(ast.ClassDef)
    }


@cache
def imported(module: str) -> Mapping[str, tuple[str, str]]:
    return {name: (where, its) for name, where, its in modules()[module].imports()}


def ancestors(module: Module, node: ast.ClassDef) -> list[list[tuple[Module, ast.ClassDef]]]:
    """The lines of classes of these packages that `node` ends; each begins with the oldest."""
    lines = []
    for base in node.bases:
        name = ast.unparse(base).split("[")[0]
        parent = classes().get(imported(module.name).get(name, (module.name, name)))
        lines += [[*line, (module, node)] for line in ancestors(*parent)] if parent else []
    return lines or [[(module, node)]]


def names_stored(module: Module) -> Iterator[tuple[str, int]]:
    for node in module.nodes(ast.Name, ast.Attribute):
        if isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr, node.lineno
    for node in module.nodes(ast.arg):
        yield node.arg, node.lineno
    for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
        yield node.name, node.lineno
    for node in module.nodes(ast.MatchAs, ast.MatchStar):
        yield node.name or "", node.lineno


def place(module: Module, node: ast.AST, what: object) -> str:
    return f"{module.path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)} {what}"


def test_no_two_classes_have_one_name():
    names = Counter(name for _, name in classes())
    assert [(where, name) for where, name in classes() if names[name] > 1] == []


def test_names_say_what_they_hold():
    assert [
        f"{module.path.relative_to(ROOT)}:{line} {name}"
        for module in modules().values()
        for name, line in names_stored(module)
        if name.strip("_") in EMPTY_WORDS
    ] == []


def test_modules_are_short_or_say_why():
    assert [
        place(module, module.tree, len(module.lines))
        for module in modules().values()
        if len(module.lines) > MOST_LINES_OF_MODULE and not module.has_reason("long", module.tree)
    ] == []


def test_functions_are_short_or_say_why():
    assert [
        place(module, node, node.name)
        for module in modules().values()
        for node in module.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        if node.end_lineno - node.lineno >= MOST_LINES_OF_FUNCTION
        and not module.has_reason("long", node)
    ] == []


def test_classes_have_few_public_methods_or_say_why():
    assert [
        place(module, node, f"{node.name} {len(methods)}")
        for module, node in classes().values()
        if len(methods := public_methods(module, node)) > MOST_PUBLIC_METHODS
        and not any(
            owner.has_reason("long", one) for line in ancestors(module, node) for owner, one in line
        )
    ] == []


def test_no_class_has_many_public_methods():
    assert [
        place(module, node, f"{node.name} {len(methods)}")
        for module, node in classes().values()
        if len(methods := public_methods(module, node)) > MOST_PUBLIC_METHODS_WITH_A_REASON
    ] == []


def public_methods(module: Module, node: ast.ClassDef) -> set[str]:
    members = (each for line in ancestors(module, node) for _, one in line for each in one.body)
    return {each.name for each in members if isinstance(each, Function) and each.name[0] != "_"}


def test_inheritance_is_flat_or_says_why():
    assert [
        place(module, node, " <- ".join(one.name for _, one in line))
        for module, node in classes().values()
        for line in ancestors(module, node)
        if len(line) > MOST_CLASSES_IN_A_LINE
        and not any(owner.has_reason("deep", one) for owner, one in line)
    ] == []


def test_a_folder_has_few_modules():
    folders = Counter(
        module.path.parent for module in modules().values() if module.path.stem != "__init__"
    )
    assert {
        str(folder): count for folder, count in folders.items() if count > MOST_MODULES_IN_A_FOLDER
    } == {}


def test_no_module_needs_itself():
    every = modules()
    needs: dict[str, set[str]] = {name: set() for name in every}
    for name, module in every.items():
        for _, where, its in module.imports():
            inner = f"{where}.{its}"
            needs[name] |= {inner if inner in every else where} & (every.keys() - {name})
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as exc:
        pytest.fail(f"these import one another: {' -> '.join(exc.args[1])}")


def replaced(test: Module) -> Iterator[tuple[ast.Call, str, str]]:
    """Each `setattr` of `test` on something: the call, what it names as its module, the name."""
    local = {name: f"{where}.{its}" for name, where, its in test.imports()}
    for call in test.nodes(ast.Call):
        if not (isinstance(call.func, ast.Attribute) and call.func.attr == "setattr"):
            continue
        match call.args:
            case [ast.Constant(value=str(whole)), _]:
                module, _, name = whole.rpartition(".")
                yield call, module, name
            case [whose, ast.Constant(value=str(name)), _]:
                module = ast.unparse(whose)
                yield call, local.get(module, module), name


def test_what_a_test_replaces_in_a_module_is_there():
    tests = [path for path in (ROOT / "tests").rglob("*.py") if "setattr(" in path.read_text()]
    found = [(test, *each) for test in map(parsed, tests) for each in replaced(test)]
    ours = [each for each in found if each[2] in modules()]
    assert len(ours) > 30, "they are found"
    assert [
        place(test, call, f"{module}.{name}")
        for test, call, module, name in ours
        if not hasattr(importlib.import_module(module), name)
    ] == []


def test_no_test_changes_a_server_that_others_follow():
    """Statements without row events and global settings concern all tables of a server."""
    changes = re.compile(r"SET GLOBAL|binlog_format *= *.?STATEMENT")
    tests = [path for path in (ROOT / "tests").rglob("*.py") if changes.search(path.read_text())]
    assert len(tests) > 10, "they are found"
    assert [
        place(module, node, node.name)
        for module in map(parsed, tests)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef)
        and "mariadb" in {each.arg for each in node.args.args}
        and any(
            isinstance(each, ast.Constant)
            and isinstance(each.value, str)
            and changes.search(each.value)
            for each in ast.walk(node)
        )
    ] == []
