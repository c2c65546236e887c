"""The ways to configure Debezium and Connect whose records differ, each a connector of its own."""

_SCHEMAS = ("key.converter.schemas.enable", "value.converter.schemas.enable")
_JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
}
BARE = {**_JSON, **dict.fromkeys(_SCHEMAS, "false")}
WITH_SCHEMA = {**_JSON, **dict.fromkeys(_SCHEMAS, "true")}
_FLAT = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
}
_FLAT_REWRITE = {
    **_FLAT,
    "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
    "transforms.unwrap.add.fields": "op,table,source.db,source.snapshot,source.ts_ms",
    "transforms.unwrap.add.headers": "op,source.table",
}
_EVERYTHING = {
    "skipped.operations": "none",
    "provide.transaction.metadata": "true",
    "tombstones.on.delete": "false",
}
_COMMON = {
    "default": BARE,
    "with_schema": WITH_SCHEMA,
    "decimal_string": {**BARE, "decimal.handling.mode": "string"},
    "decimal_double": {**BARE, "decimal.handling.mode": "double"},
    "decimal_number": {**BARE, "value.converter.decimal.format": "NUMERIC"},
    "time_connect": {**BARE, "time.precision.mode": "connect"},
    "time_isostring": {**BARE, "time.precision.mode": "isostring"},
    "time_microseconds": {**BARE, "time.precision.mode": "microseconds"},
    "time_nanoseconds": {**BARE, "time.precision.mode": "nanoseconds"},
    "binary_base64": {**BARE, "binary.handling.mode": "base64"},
    "binary_base64_url_safe": {**BARE, "binary.handling.mode": "base64-url-safe"},
    "binary_hex": {**BARE, "binary.handling.mode": "hex"},
    "flattened": {**BARE, **_FLAT},
    "flattened_rewrite": {**BARE, **_FLAT_REWRITE},
    "flattened_with_schema": {**WITH_SCHEMA, **_FLAT_REWRITE},
    "truncate_and_transactions": {**BARE, **_EVERYTHING},
    "all_strings_with_schema": {
        **WITH_SCHEMA,
        "decimal.handling.mode": "string",
        "time.precision.mode": "isostring",
        "binary.handling.mode": "hex",
        "column.propagate.source.type": ".*",
    },
}
AVRO = "avro"  # its converters need the registry's address, which the recorder adds
_COMMON[AVRO] = {"schema.name.adjustment.mode": "avro", "field.name.adjustment.mode": "avro"}
MARIADB = {
    **_COMMON,
    "unsigned_precise": {**BARE, "bigint.unsigned.handling.mode": "precise"},
    "unsigned_precise_string": {
        **BARE,
        "bigint.unsigned.handling.mode": "precise",
        "decimal.handling.mode": "string",
    },
}
POSTGRES = {
    **_COMMON,
    "time_adaptive_microseconds": {
        **BARE,
        "time.precision.mode": "adaptive_time_microseconds",
        "interval.handling.mode": "string",
    },
    "unknown_included": {**BARE, "include.unknown.datatypes": "true"},
}


def captured(mode: str) -> tuple[str, ...]:
    if mode.startswith(("decimal_", "time_", "binary_", "unsigned_", "unknown_")):
        return ("types", "extremes")
    return ("types",) if mode == "all_strings_with_schema" else ()
