"""JSON that the compiled pass does not take, written so that it does: names without escapes.

What is written is what Python's parser has read, numbers letter by letter. An object with two
members of one name is refused: nobody knows which one counts.
"""

import json

from joins.kernels.json.maps import WrittenNumber, broken


def normal(value: bytes) -> bytes:
    """The same JSON as the compiled pass takes it.

    Raises:
        ValueError: it is no JSON, with the reason.
    """
    try:
        return _written(_DECODER.decode(value.decode("utf-8"))).encode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("the value is not UTF-8") from None
    except UnicodeEncodeError:
        raise ValueError("invalid JSON: half of a surrogate pair") from None
    except (ValueError, RecursionError) as exc:
        raise ValueError(broken(exc)) from None


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f'field "{twice[:60]}" appears twice')
    return members


def _constant(text: str) -> object:
    raise ValueError(f"{text} is no JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members,
    parse_int=WrittenNumber,
    parse_float=WrittenNumber,
    parse_constant=_constant,
)


def _written(value: object) -> str:
    if isinstance(value, WrittenNumber):
        return str(value)
    if isinstance(value, dict):
        members = (f"{_text(name)}:{_written(member)}" for name, member in value.items())
        return f"{{{','.join(members)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_written, value))}]"
    return _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
