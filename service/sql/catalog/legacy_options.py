"""Options of Flink 1.9 and 1.10, `'connector.type' = …`, as those of later versions.

Flink documents both forms. An option that has no place in the later form stays as it is, so that it
is refused by its name.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from service.sql.grammar.syntax import CreateTable, OptionNode

TYPE = "connector.type"
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
_WITHOUT_EFFECT = re.compile(
    r"(?:connector|format)\.property-version|connector\.version"
    r"|format\.(?:derive-schema|json-schema|schema|avro-schema|record-class)"
    r"|format\.fields\.\d+\.(?:name|type|data-type)"
)
"""The version, and the schema of the format: that of the table counts, as in later versions."""
_APPENDS = ("update-mode", "append")


def with_later_options(node: CreateTable) -> tuple[CreateTable, tuple[str, ...]]:
    """The table with later options, and a warning that says so."""
    by_key = {option.key: option for option in node.options}
    kind = by_key.get(TYPE)
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
        if option.key == TYPE:
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
        elif not _WITHOUT_EFFECT.fullmatch(option.key) and (option.key, option.value) != _APPENDS:
            yield option


def _is_of(form: str, key: str) -> bool:
    return key.removeprefix("format.") in _FORMATS.get(form, ())
