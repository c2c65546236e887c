"""Plans as bytes: JSON with the plan's own format version, as in `plan.json` and the job store."""

from functools import cache
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from joins.plan.plan import (
    PLAN_FORMAT_VERSION,
    SET_FORMAT_VERSION,
    TABLES_FORMAT_VERSION,
    JoinPlan,
)
from service.errors import StoreError

_KNOWN = (PLAN_FORMAT_VERSION, SET_FORMAT_VERSION, TABLES_FORMAT_VERSION)


class PlanFormatError(StoreError, fault="plan-format"):
    """A stored plan is damaged or of another format."""


@cache
def _adapter() -> TypeAdapter[JoinPlan]:
    return TypeAdapter(JoinPlan)


def dump(plan: JoinPlan) -> bytes:
    """The plan as JSON. Raises PlanFormatError if an expression is nested too deeply."""
    try:
        return _adapter().dump_json(plan)
    except PydanticSerializationError as exc:
        raise PlanFormatError(
            f'plan "{plan.name}" cannot be written: {str(exc)[:200]}',
            hint="Split its deepest expression.",
        ) from exc


def load(data: bytes) -> JoinPlan:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise PlanFormatError(
            "the stored plan is not JSON", hint="Restore the job's directory or submit it again."
        ) from exc
    version = document.get("format_version") if isinstance(document, dict) else None
    if version not in _KNOWN:
        raise PlanFormatError(
            f'the stored plan has format version "{version}", expected one of '
            + ", ".join(map(str, _KNOWN)),
            hint="Use the version of Sluice that wrote it, or submit the script again.",
        )
    _bring_up_to_date(document)
    try:
        return _adapter().validate_python(document)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:200]
        raise PlanFormatError(
            f"the stored plan is damaged at {where}: {first['msg']}",
            hint="Restore the job's directory or submit it again.",
        ) from exc


def _bring_up_to_date(document: dict[str, Any]) -> None:
    """Rename topic fields of plans from before `joins.plan.formats`."""
    inserts = [document, *document.get("more_inserts", ())]
    for sink in (insert.get("sink", {}) for insert in inserts):
        if sink.get("kind") == "kafka" and "format" in sink:
            sink["value"] = {"name": sink.pop("format")}
            key_fields = sink.pop("key_fields", ())
            sink["key"] = {"fields": key_fields} if key_fields else None
    for dimension in document.get("dimensions", ()):
        source = dimension.get("source", {})
        if source.get("kind") == "topic" and "format" in source:
            options, registry = source.pop("format_options", ()), source.pop("registry", None)
            value = {"name": source.pop("format"), "options": options, "registry": registry}
            is_keyed = source.get("evidence") is None and source.get("deletes_by_null", True)
            source["value"] = value
            source["key"] = {"fields": dimension["primary_key"]} if is_keyed else None
