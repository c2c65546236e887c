"""Records of a dimension's topic as changes of its columns, by the format of the topic."""

from collections.abc import Mapping

from joins.adapters.registry.schemas import SchemaRegistry, shared_schemas
from joins.kernels.debezium import decoder as debezium
from joins.kernels.debezium.decoder import DebeziumDecoder
from joins.kernels.debezium.options import (
    BigintUnsignedHandling,
    BinaryHandling,
    CapturedName,
    DebeziumOptions,
    DecimalHandling,
    SpecialValues,
    TimePrecision,
    ValueLayout,
)
from joins.kernels.formats import avro_payloads as avro
from joins.kernels.formats.avro_payloads import AvroMemory
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.topic.rows import (
    KeyedRowDecoder,
    PlacedRowDecoder,
    RecordTimeDecoder,
    TopicDecoder,
)
from joins.plan.formats import OF_CHANGES
from joins.plan.plan import Field, TopicSource, declared_fields


def schemas_of(source: TopicSource) -> SchemaRegistry | None:
    """The registry of the topic's schemas, None of a format that has none.

    Raises:
        SourceError: a certificate for it cannot be used.
    """
    registry = source.value.registry
    return None if registry is None else SchemaRegistry(registry)


def decoder_of(
    source: TopicSource,
    fields: tuple[Field, ...],
    primary_key: tuple[str, ...],
    schemas: SchemaRegistry | None,
) -> TopicDecoder:
    """The decoder of the topic's format; what `schemas` raise for a record goes through it."""
    parsed, made = source.parsed_fields(fields), declared_fields(fields)
    decoder: TopicDecoder
    if source.value.name in OF_CHANGES:
        options, payloads = debezium_options(dict(source.value.options)), None
        if schemas is not None:
            payloads = AvroMemory(schemas.avro_schema), AvroMemory(schemas.avro_schema)
        decoder = DebeziumDecoder(parsed, primary_key, options, payloads=payloads)
    else:
        columns = RecordColumns(parsed, source.value, source.key)
        key = primary_key if made == fields else ()
        deletes = source.deletes_by_null and made == fields
        decoder = KeyedRowDecoder(columns, key, deletes_by_null=deletes, schemas=shared_schemas)
    if source.metadata:
        decoder = RecordTimeDecoder(decoder, source.metadata)
    return decoder if made == fields else PlacedRowDecoder(decoder)


def warm_up(source: TopicSource) -> None:
    """Compile what decodes the topic, or read what another process of this node has compiled."""
    if source.value.name in OF_CHANGES:
        debezium.warm_up()
    if source.value.registry is not None:
        avro.warm_up()


def debezium_options(options: Mapping[str, str]) -> DebeziumOptions:
    """The options of the format as a script has them; what is missing is Debezium's default."""
    made = DebeziumOptions()
    included = options.get("schema-include")
    return DebeziumOptions(
        layout=ValueLayout(options.get("layout", made.layout)),
        schema_include=None if included is None else included == "true",
        decimal_handling=DecimalHandling(
            options.get("decimal.handling.mode", made.decimal_handling)
        ),
        bigint_unsigned=BigintUnsignedHandling(
            options.get("bigint.unsigned.handling.mode", made.bigint_unsigned)
        ),
        time_precision=TimePrecision(options.get("time.precision.mode", made.time_precision)),
        binary_handling=BinaryHandling(options.get("binary.handling.mode", made.binary_handling)),
        bit_columns=frozenset(filter(None, options.get("bit.columns", "").split(";"))),
        unavailable_value=options.get("unavailable.value.placeholder", made.unavailable_value),
        special_values=SpecialValues(options.get("special.values", made.special_values)),
        null_if_missing=options.get("fail-on-missing-field", "true") == "false",
        table=_captured(options),
    )


def _captured(options: Mapping[str, str]) -> CapturedName | None:
    table = options.get("source.table")
    if table is None:
        return None
    return CapturedName(table, options.get("source.schema"), options.get("source.db"))
