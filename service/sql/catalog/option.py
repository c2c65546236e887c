"""Options of connectors: key, type, and allowed values; and those of Flink 1.10 by later names."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum, auto
from pathlib import Path
from typing import Any

from joins.plan.durations import duration_ms
from service.sql.grammar.syntax import CreateTable, OptionNode

PEM: dict[str, Any] = {
    "reference": True,
    "pattern": r"\$\{secret:[^{}]{1,128}\}",
    "form": "${secret:name} of a secret that holds a PEM text",
}
"""Of an option that is a certificate or a key."""
ADDRESS: dict[str, Any] = {
    "pattern": (
        r"https?://(?:[A-Za-z0-9][A-Za-z0-9_.-]{0,252}|\[[0-9A-Fa-f:.]+\])"
        r"(?::(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]"
        r"|6553[0-5]))?(?:/[A-Za-z0-9._~/-]{0,200})?"
    ),
    "form": "http://host:port or https://host:port, without a login",
}
"""Of an option that is where a service answers by HTTP."""

WITHOUT_EFFECT: dict[str, dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_name("without_effect.toml").read_text(encoding="utf-8")
)
"""Table → reason → keys."""
HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,252})|\[[0-9A-Fa-f:.]+\])"


class TableRole(StrEnum):
    """What a table is in the query that names it."""

    STREAM = "a stream"
    DIMENSION = "a dimension"
    SINK = "a sink"


READ = frozenset((TableRole.STREAM, TableRole.DIMENSION))


class OptionType(Enum):
    """How an option's value is read."""

    TEXT = auto()
    NUMBER = auto()
    DURATION = auto()
    MEMORY = auto()
    FLAG = auto()
    CHOICE = auto()


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a connector.

    Attributes:
        key: as in WITH; one segment may be `#`, a placeholder for a column name.
        default: as text; None leaves the option unset.
        lowest: inclusive, as is `highest`; a DURATION in milliseconds, a MEMORY in bytes.
        pattern: what a TEXT must match; `form` says it in words, also for a DURATION.
        credential: the value is a secret; an inline one is stored as a reference.
        reference: the value may be a `${secret:name}` reference.
        roles: roles in which it has an effect; in others it is accepted with a warning, or refused.
        instead: of an option that is accepted without effect: why, as the end of a sentence. Its
            key may end in `*`, which stands for any text.
        otherwise: hint for a value that is refused; one made of what it accepts when empty.
    """

    key: str
    meaning: str
    type: OptionType = OptionType.TEXT
    default: str | None = None
    required: bool = False
    lowest: int = 0
    highest: int = 2**63 - 1
    choices: tuple[str, ...] = ()
    pattern: str = r"[^\x00-\x1f\x7f]{1,1024}"
    form: str = "1 to 1,024 printable characters"
    credential: bool = False
    reference: bool = False
    roles: frozenset[TableRole] = frozenset(TableRole)
    instead: str = ""
    otherwise: str = ""


def duration(
    key: str,
    meaning: str,
    form: str,
    *,
    default: str | None = None,
    roles: frozenset[TableRole] = frozenset(TableRole),
) -> Option:
    """An option whose `form` begins with its bounds, such as `1 s to 365 d, such as 5 min`."""
    lowest, highest = (duration_ms(text) or 0 for text in form.partition(",")[0].split(" to "))
    return Option(
        key,
        meaning,
        OptionType.DURATION,
        default,
        lowest=lowest,
        highest=highest,
        form=form,
        roles=roles,
    )


def ignored(table: str, prefix: str = "") -> tuple[Option, ...]:
    """Options whose value has no meaning here, whatever it is."""
    reasons = WITHOUT_EFFECT[table].items()
    return tuple(_ignored(prefix + key, reason) for reason, keys in reasons for key in keys)


def only_value(key: str, choices: Iterable[str], instead: str, otherwise: str) -> Option:
    """An option that may say what is done anyway; `otherwise` answers any other value."""
    option = replace(_ignored(key, instead), type=OptionType.CHOICE, choices=tuple(choices))
    return replace(option, otherwise=otherwise)


def _ignored(key: str, instead: str) -> Option:
    meaning = f"Accepted without effect: {instead}."
    form = "any text of at most 4,096 characters"
    return Option(key, meaning, pattern=r"(?s:.{0,4096})", form=form, instead=instead)


PARTITIONS = Option(
    "changelog.partitions",
    "Partitions of the changelog topic; the service's setting when missing.",
    OptionType.NUMBER,
    lowest=1,
    highest=1024,
)


def with_prefix(prefix: str, *options: Option) -> tuple[Option, ...]:
    return tuple(replace(option, key=prefix + option.key) for option in options)


def only_of(options: Iterable[Option], *roles: TableRole) -> tuple[Option, ...]:
    return tuple(replace(option, roles=frozenset(roles)) for option in options)


OLD_TYPE = "connector.type"
"""What names the connector in scripts of Flink 1.9 and 1.10, whose options have other names."""
_FORMAT = "format.type"
_CONNECTORS = {
    "kafka": {
        "connector.topic": "topic",
        "connector.startup-mode": "scan.startup.mode",
        "connector.startup-timestamp-millis": "scan.startup.timestamp-millis",
        "connector.specific-offsets": "scan.startup.specific-offsets",
        "connector.sink-partitioner": "sink.partitioner",
    },
    "jdbc": {
        "connector.url": "url",
        "connector.table": "table-name",
        "connector.driver": "driver",
        "connector.username": "username",
        "connector.password": "password",
        "connector.read.partition.column": "scan.partition.column",
        "connector.read.partition.num": "scan.partition.num",
        "connector.read.partition.lower-bound": "scan.partition.lower-bound",
        "connector.read.partition.upper-bound": "scan.partition.upper-bound",
        "connector.read.fetch-size": "scan.fetch-size",
        "connector.lookup.cache.max-rows": "lookup.cache.max-rows",
        "connector.lookup.cache.ttl": "lookup.cache.ttl",
        "connector.lookup.max-retries": "lookup.max-retries",
        "connector.write.flush.max-rows": "sink.buffer-flush.max-rows",
        "connector.write.flush.interval": "sink.buffer-flush.interval",
        "connector.write.max-retries": "sink.max-retries",
    },
    "filesystem": {"connector.path": "path"},
}
_FORMATS = {
    "json": ("fail-on-missing-field", "ignore-parse-errors"),
    "csv": (
        *("field-delimiter", "quote-character", "disable-quote-character", "allow-comments"),
        *("ignore-parse-errors", "array-element-delimiter", "escape-character", "null-literal"),
    ),
    "avro": (),
}
_PROPERTY, _NEW_PROPERTY = "connector.properties.", "properties."
_NUMBERED = re.compile(r"connector\.properties\.(\d+)\.(key|value)")
_DROPPED = re.compile(
    r"(?:connector|format)\.property-version|connector\.version"
    r"|format\.(?:derive-schema|json-schema|schema|avro-schema|record-class)"
    r"|format\.fields\.\d+\.(?:name|type|data-type)"
)
"""The version, and the schema of the format: that of the table counts, as in later versions."""
_APPENDS = ("update-mode", "append")


def with_later_options(node: CreateTable) -> tuple[CreateTable, tuple[str, ...]]:
    """The table with the options of later versions, and a warning that says so.

    An option that has no place there stays as it is, so that it is refused by its name.
    """
    by_key = {option.key: option for option in node.options}
    kind = by_key.get(OLD_TYPE)
    if kind is None or "connector" in by_key:
        return node, ()
    options = tuple(_later(node, kind.value, by_key))
    note = (
        f'Table "{node.name.text}" has the options of Flink 1.10; they are read as '
        f"'connector' = '{kind.value[:40]}' with the options of later versions."
    )
    return replace(node, options=options), (note,)


def _later(node: CreateTable, kind: str, by_key: Mapping[str, OptionNode]) -> Iterator[OptionNode]:
    form = by_key.get(_FORMAT)
    names = _CONNECTORS.get(kind, {})
    for option in node.options:
        numbered = _NUMBERED.fullmatch(option.key)
        if option.key == OLD_TYPE:
            yield replace(option, key="connector")
        elif option.key == _FORMAT:
            yield replace(option, key="format")
        elif numbered is not None:
            key = by_key.get(f"{_PROPERTY}{numbered[1]}.key")
            if key is None:
                yield option
            elif numbered[2] == "value":
                yield replace(option, key=_NEW_PROPERTY + key.value)
        elif option.key.startswith(_PROPERTY):
            yield replace(option, key=option.key.removeprefix("connector."))
        elif option.key in names:
            yield replace(option, key=names[option.key])
        elif form is not None and _is_of(form.value, option.key):
            yield replace(option, key=form.value + option.key.removeprefix("format"))
        elif not _DROPPED.fullmatch(option.key) and (option.key, option.value) != _APPENDS:
            yield option


def _is_of(form: str, key: str) -> bool:
    return key.removeprefix("format.") in _FORMATS.get(form, ())
