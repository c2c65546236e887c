"""Every place of the source that gives an error a hint, found in its syntax tree.

A hint is known by its file and its text: literals as they are, `{}` for what is filled in. A place
that hands on the hint which its caller gave (`hint=hint`, a parameter) is none.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("service", "joins", "watermark")
_DEEPEST = 4  # assignments that lead to a text
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Site:
    """One call with `hint=`.

    Attributes:
        path: of the file, from the root.
        first: line of the call.
        last: its last line.
        hints: the texts that it may give; several where one is chosen.
    """

    path: str
    first: int
    last: int
    hints: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(f"{self.path}: {hint}" for hint in self.hints)


@cache
def sites() -> tuple[Site, ...]:
    found = [site for package in PACKAGES for site in _of_package(package)]
    return tuple(sorted(found, key=lambda site: (site.path, site.first)))


def _of_package(package: str) -> Iterator[Site]:
    for path in sorted((ROOT / package).rglob("*.py")):
        text = path.read_text()
        if "hint=" not in text:
            continue
        tree = ast.parse(text)
        name = str(path.relative_to(ROOT))
        assigned = cache(lambda scope: _assigned(scope.body))
        for function, call, value in _hinted(tree, None):
            if not _is_handed_on(function, value):
                known: dict[str, list[ast.expr]] = {}
                if not isinstance(value, ast.Constant | ast.JoinedStr):
                    known = assigned(tree) | (assigned(function) if function is not None else {})
                hints = tuple(dict.fromkeys(_texts(value, known)))
                yield Site(name, call.lineno, call.end_lineno or call.lineno, hints)


def _hinted(
    node: ast.AST, function: _Function | None
) -> Iterator[tuple[_Function | None, ast.Call, ast.expr]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Call):
            for keyword in child.keywords:
                if keyword.arg == "hint":
                    yield function, child, keyword.value
        inside = child if isinstance(child, _Function) else function
        yield from _hinted(child, inside)


def _is_handed_on(function: _Function | None, value: ast.expr) -> bool:
    """Whether somebody else has written the hint: a caller, or the error that is told anew."""
    if isinstance(value, ast.Attribute) and value.attr == "hint":
        return True
    if isinstance(value, ast.Subscript) and ast.unparse(value.slice) == "'hint'":
        return True
    if function is None or not isinstance(value, ast.Name):
        return False
    given = function.args
    names = {arg.arg for arg in (*given.args, *given.kwonlyargs, *given.posonlyargs)}
    return value.id in names


def _assigned(body: list[ast.stmt]) -> dict[str, list[ast.expr]]:
    """Name → what is assigned to it anywhere below."""
    found: dict[str, list[ast.expr]] = {}
    for node in (each for statement in body for each in ast.walk(statement)):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign | ast.AugAssign):
            targets = [node.target]
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.expr):
                found.setdefault(target.id, []).append(value)
            elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                for name, part in zip(target.elts, value.elts, strict=False):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(part)
    return found


def _texts(value: ast.expr, known: Mapping[str, list[ast.expr]], depth: int = 0) -> Iterator[str]:
    """The texts that `value` may be."""
    match value:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr(values=parts):
            yield "".join(_part(part) for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            firsts, seconds = (list(_texts(each, known, depth)) for each in (left, right))
            yield from (first + second for first in firsts for second in seconds)
        case ast.Call(func=ast.Name(id="suggestion"), args=[_, _, otherwise]):
            yield 'Did you mean "{}"?'
            yield from _texts(otherwise, known, depth)
        case ast.Call(func=ast.Name(id="NameHint"), args=[_]):
            yield 'Did you mean "{}"?'
        case _:
            choices = _choices(value, known) if depth < _DEEPEST else []
            for choice in choices:
                yield from _texts(choice, known, depth + 1)
            if not choices:
                yield f"{{{ast.unparse(value)}}}"


def _choices(value: ast.expr, known: Mapping[str, list[ast.expr]]) -> list[ast.expr]:
    """Of what `value` is one; nothing if that cannot be seen."""
    match value:
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
        case ast.BoolOp(values=values) | ast.Dict(values=values):
            return values
        case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)):
            return known.get(name, [])
    return []


def _part(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"
