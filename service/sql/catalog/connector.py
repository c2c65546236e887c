"""A connector: its options, its tables in each role, and where their rows are kept."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from joins.plan.plan import DatagenSource, DimensionSource, Field, KafkaSource, Sink
from service.sql.catalog.option import Option
from service.sql.catalog.option_values import OptionValues


class Home(StrEnum):
    """Where the rows of a connector's tables are stored."""

    DATABASE = "database"
    DELTA = "table"
    FILES = "files"
    RECORDS = "records"
    NONE = ""


@dataclass(frozen=True, slots=True)
class Endpoints:
    """A table in each role; None for a role that its connector does not support.

    `several_topics` is the option that names several topics. Without a startup mode the planner
    warns.
    """

    stream: KafkaSource | DatagenSource | None = None
    dimension: DimensionSource | None = None
    sink: Sink | None = None
    has_startup_mode: bool = True
    several_topics: str | None = None


@dataclass(frozen=True, slots=True)
class Connector:
    """What SQL knows of a connector; `service.sql.catalog.connectors` registers it.

    `endpoints` takes checked options, physical columns and primary key.
    """

    name: str
    options: tuple[Option, ...]
    endpoints: Callable[[OptionValues, tuple[Field, ...], tuple[str, ...]], Endpoints]
    home: Home = Home.NONE
    needs_primary_key: bool = False
