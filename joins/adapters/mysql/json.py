"""MySQL's binary JSON as the text that the server shows for it."""

import datetime as dt
import decimal
import json

from pymysqlreplication import json_binary


def json_text(raw: bytes) -> str:
    """The text of one JSON value, in the server's own layout (`{"a": [1, 2.0]}`)."""
    if not raw:
        return "null"
    return _text(json_binary.parse_json(raw[0], raw[1:]))


def _text(value: object) -> str:
    if isinstance(value, dict):
        members = (f"{_text(key)}: {_text(item)}" for key, item in value.items())
        return "{" + ", ".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_text(item) for item in value) + "]"
    if isinstance(value, bytes):
        return json.dumps(value.decode("utf-8"), ensure_ascii=False)
    if isinstance(value, float):
        return repr(value).replace("e+", "e")
    if isinstance(value, decimal.Decimal):
        return format(value, "f")
    if isinstance(value, dt.date | dt.time | dt.timedelta):
        return json.dumps(str(value))
    return json.dumps(value, ensure_ascii=False)
