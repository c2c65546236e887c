"""What all documents of the API have in common."""

from pydantic import BaseModel, ConfigDict, ValidationError, ValidatorFunctionWrapHandler
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


class Document(BaseModel):
    """An answer: it cannot be changed, and what it does not know is left out."""

    # reads better deep: a longer answer has all fields of a shorter one, in one OpenAPI document.

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Body(BaseModel):
    """What a request brings: what is not known is refused."""

    # reads better deep: a longer request has all fields of a shorter one.

    model_config = ConfigDict(frozen=True, extra="forbid")
