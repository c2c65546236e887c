"""What all documents of the API have in common."""

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """An answer: it cannot be changed, and what it does not know is left out."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


class Body(BaseModel):
    """What a request brings: what is not known is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")
