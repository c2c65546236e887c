"""JSON_EXISTS, JSON_VALUE, JSON_QUERY, JSON_LENGTH and IS JSON: what a JSON text has at a path.

Empty is what leads nowhere in a lax path; an error is a text that is no JSON, a strict path that
leads nowhere, or a value of another form than the function gives. Each has a behaviour.
"""

from collections.abc import Callable, Mapping

from joins.kernels.documents.paths import JsonPath, path_of
from joins.kernels.documents.texts import Json, JsonError, parsed, written
from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.conversion import java_double
from joins.kernels.expressions.operation import Function, Operation, Value, of_rows
from joins.kernels.expressions.result_limits import bounded, bytes_of
from joins.kernels.strings.rows import with_nulls
from joins.plan.types import SqlType, TypeName

EMPTIES = {"EMPTY ARRAY": "[]", "EMPTY OBJECT": "{}"}


def _is_scalar(value: Json) -> bool:
    return not isinstance(value, dict | list)


def _exists(text: str, path: str, on_error: str) -> bool | None:
    try:
        return path_of(path).read(parsed(text)) is not None
    except JsonError:
        if on_error == "ERROR":
            raise
        return {"TRUE": True, "FALSE": False}.get(on_error)


def _value(op: Operation) -> Value | Checked:
    """The arguments: text, path, on empty, on error, and the values of both if they are DEFAULT."""
    convert = _CONVERTED[op.result.name]

    def of_row(text: str | None, path: str, empty: str, error: str, *defaults: object) -> object:
        if text is None:
            return None
        way = path_of(path)
        try:
            value = way.read(parsed(text))
            if value is not None and _is_scalar(value):
                return convert(value)
            if value is not None and way.strict:
                raise JsonError("a scalar value is required")
        except JsonError:
            return _instead(error, defaults[1])
        return _instead(empty, defaults[0])

    return with_nulls(of_row)(op)


def _instead(behaviour: str, default: object) -> object:
    if behaviour == "ERROR":
        raise ValueError(behaviour)
    return default if behaviour == "DEFAULT" else None


def _as_text(value: Json) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return java_double(value) if isinstance(value, float) else str(value)


def _exactly(kind: type) -> Callable[[Json], Json]:
    def convert(value: Json) -> Json:
        if type(value) is not kind:
            raise ValueError(f"{value!r} is no {kind.__name__}")
        return value

    return convert


def _as_int(value: Json) -> int:
    number: int = _exactly(int)(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError(number)
    return number


_CONVERTED: Mapping[TypeName, Callable[[Json], object]] = {
    TypeName.STRING: _as_text,
    TypeName.BOOLEAN: _exactly(bool),
    TypeName.INT: _as_int,
    TypeName.DOUBLE: _exactly(float),
}


def _query(op: Operation) -> Value | Checked:
    """The arguments: text, path, wrapper, on empty, on error."""
    result = _list_of if op.result.name is TypeName.ARRAY else written

    def of_row(text: str, path: str, wrapper: str, empty: str, error: str) -> object:
        way = path_of(path)
        try:
            value = _wrapped(way, parsed(text), wrapper)
            if value is not None and not _is_scalar(value):
                return result(value)
            if value is not None and way.strict:
                raise JsonError("an array or object is required")
        except JsonError:
            return _emptied(error, op.result)
        return _emptied(empty, op.result)

    return of_rows(of_row)(op)


def _wrapped(path: JsonPath, document: Json, wrapper: str) -> Json:
    value = path.read(document)
    if value is None or wrapper == "WITHOUT":
        return value
    return value if wrapper == "CONDITIONAL" and isinstance(value, list) else [value]


def _list_of(value: Json) -> list[str | None]:
    if not isinstance(value, list):
        raise JsonError("an array is required")
    return [
        None if each is None else each if isinstance(each, str) else written(each) for each in value
    ]


def _emptied(behaviour: str, result: SqlType) -> object:
    if behaviour == "ERROR":
        raise ValueError(behaviour)
    if behaviour not in EMPTIES:
        return None
    return [] if result.name is TypeName.ARRAY else EMPTIES[behaviour]


def _is_json(text: str, form: str) -> bool:
    try:
        value = parsed(text)
    except JsonError:
        return False
    if form == "SCALAR":
        return _is_scalar(value)
    return form == "VALUE" or isinstance(value, list if form == "ARRAY" else dict)


def _length(text: str, path: str = "lax $") -> int | None:
    """Of what the path leads to; NULL for nothing, for several values, and for no JSON."""
    way = path_of(path)
    try:
        value = way.read(parsed(text))
    except JsonError:
        return None
    if not way.is_definite:
        value = value[0] if len(value) == 1 else None
    if value is None:
        return None
    return 1 if _is_scalar(value) else len(value)


QUESTIONS: Mapping[str, Function] = {
    "JSON_EXISTS": of_rows(_exists),
    "JSON_VALUE": _value,
    "JSON_QUERY": bounded(_query, lambda op: bytes_of(op.array(0))),
    "IS JSON": of_rows(_is_json),
    "JSON_LENGTH": of_rows(_length),
}
