"""Plans as bytes: JSON with the plan's own format version, as in `plan.json` and the job store."""

from functools import cache

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
    try:
        return _adapter().validate_python(document)
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])[:200]
        raise PlanFormatError(
            f"the stored plan is damaged at {where}: {first['msg']}",
            hint="Restore the job's directory or submit it again.",
        ) from exc
