"""The base of the API's documents, and the document of a program."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler
from pydantic.functional_validators import WrapValidator


def _or_newer(value: object, known: ValidatorFunctionWrapHandler) -> object:
    try:
        return known(value)
    except ValidationError:
        if not isinstance(value, str):
            raise
        return value


OrNewer = WrapValidator(_or_newer)
"""For names of which newer programs may have more: one that is not known stays a plain text."""


def default(value: Any, description: str) -> Any:  # noqa: ANN401 (as pydantic's Field)
    """A field that may be left out, and what it means."""
    return Field(default=value, description=description)


class Document(BaseModel):
    """An answer: it cannot be changed, and what it does not know is left out."""

    # reads better deep: a longer answer has all fields of a shorter one, in one OpenAPI document.

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Body(BaseModel):
    """What a request brings: what is not known is refused, also `"5"` for 5 and 1 for true."""

    # reads better deep: a longer request has all fields of a shorter one.

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Health(Document):
    """Answer of the health addresses."""

    status: Literal["ok"]


class VersionView(Document):
    """Which program answers."""

    name: Literal["sluice"]
    version: str
    role: Literal["leader", "standby"] = default(
        "leader", "A standby reads only and takes over when the one that leads ends."
    )
    leader_url: str | None = default(
        None, "Where the one that leads answers; null with a store on SQLite."
    )
    kafka_bootstrap_servers: str | None = default(
        None, "Brokers of its own topics; null where those of a stream have them."
    )


class ExampleView(Document):
    """A script that runs with what this control plane has."""

    name: str
    sql: str


class ExampleList(Document):
    """Scripts that run here, by name."""

    items: list[ExampleView]
    directory: str | None = default(
        None, "Where `sluice up` has the connections of its servers; null without it."
    )
