"""Formats of the keys and values of a topic's records."""

from dataclasses import dataclass
from enum import StrEnum

from joins.plan.connections import RegistryOptions


class KafkaFormat(StrEnum):
    """Format of a key or a value; Debezium's are changes of rows, the others are rows."""

    JSON = "json"
    CSV = "csv"
    RAW = "raw"
    AVRO = "avro"
    AVRO_CONFLUENT = "avro-confluent"
    DEBEZIUM_JSON = "debezium-json"
    DEBEZIUM_AVRO_CONFLUENT = "debezium-avro-confluent"


OF_CHANGES = frozenset((KafkaFormat.DEBEZIUM_JSON, KafkaFormat.DEBEZIUM_AVRO_CONFLUENT))
"""Formats whose values are changes of rows."""
WITH_REGISTRY = frozenset((KafkaFormat.AVRO_CONFLUENT, KafkaFormat.DEBEZIUM_AVRO_CONFLUENT))
"""Formats whose schemas are in a registry."""

RECORD_TIMESTAMP, SOURCE_TIMESTAMP = "timestamp", "value.source.timestamp"
"""Metadata that are times: of the record in Kafka, and of the change in its database."""

FAIL_ON_MISSING_FIELD, IGNORE_PARSE_ERRORS = "fail-on-missing-field", "ignore-parse-errors"
TIMESTAMP_FORMAT, ISO_8601 = "timestamp-format.standard", "ISO-8601"
SUBJECT, SCHEMA = "subject", "schema"
IGNORE_NULL_FIELDS = "encode.ignore-null-fields"

CHARSETS = {
    "UTF-8": "utf-8",
    "UTF-16BE": "utf-16-be",
    "UTF-16LE": "utf-16-le",
    "US-ASCII": "ascii",
    "ISO-8859-1": "latin-1",
}
"""For `raw.charset`: Java's name → Python's; the first three encode all characters."""
OF_ALL_CHARACTERS = tuple(CHARSETS)[:3]


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """Format of a key or a value; `options` are named without the format's prefix."""

    name: KafkaFormat = KafkaFormat.JSON
    options: tuple[tuple[str, str], ...] = ()
    registry: RegistryOptions | None = None

    def text(self, option: str, default: str = "") -> str:
        return dict(self.options).get(option, default)

    def flag(self, option: str) -> bool:
        return self.text(option).lower() == "true"

    @property
    def needs_all(self) -> bool:
        return self.flag(FAIL_ON_MISSING_FIELD)

    @property
    def explained(self) -> str:
        registry = () if self.registry is None else (f"schemas {self.registry.url}",)
        options = ", ".join((*(f"{key} {text}" for key, text in self.options), *registry))
        return f"{self.name}({options})" if options else str(self.name)


JSON_FORMAT = RecordFormat()


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The columns that are the key of a record."""

    fields: tuple[str, ...]  # names in SQL, in the order of the key
    format: RecordFormat = JSON_FORMAT
    prefix: str = ""  # of these names; the key itself has them without it
    is_in_value: bool = True  # the value has these columns too, and they are read there

    def name_of(self, field: str) -> str:
        return field.removeprefix(self.prefix)


def formats_explained(value: RecordFormat, key: RecordKey | None) -> list[str]:
    """What EXPLAIN has of a topic's formats; plain JSON is not mentioned."""
    parts = []
    if key is not None:
        form = "" if key.format == JSON_FORMAT else f" of {key.format.explained}"
        prefix = f" without {key.prefix}" if key.prefix else ""
        place = "" if key.is_in_value else " and not in the value"
        parts.append(f"key {'; '.join(key.fields)}{form}{prefix}{place}")
    return parts if value == JSON_FORMAT else [*parts, value.explained]
