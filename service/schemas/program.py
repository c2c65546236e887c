"""Wire models about the control plane itself."""

from typing import Annotated, Literal

from pydantic import Field

from service.schemas.document import Document


class Health(Document):
    """Answer of the health addresses."""

    status: Literal["ok"]


class VersionView(Document):
    """Which program answers."""

    name: Literal["sluice"]
    version: str
    kafka_bootstrap_servers: Annotated[
        str | None,
        Field(description="Brokers of its own topics; null where those of a stream have them."),
    ] = None
