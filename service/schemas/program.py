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
    role: Annotated[
        Literal["leader", "standby"],
        Field(description="A standby reads only and takes over when the one that leads ends."),
    ] = "leader"
    leader_url: Annotated[
        str | None,
        Field(description="Where the one that leads answers; null with a store on SQLite."),
    ] = None
    kafka_bootstrap_servers: Annotated[
        str | None,
        Field(description="Brokers of its own topics; null where those of a stream have them."),
    ] = None
