"""Options of the formats of rows: one table for keys and values, streams, dimensions and sinks."""

from joins.kernels.formats.avro_schema import LEGACY_TIMESTAMPS
from joins.plan.formats import (
    CHARSETS,
    FAIL_ON_MISSING_FIELD,
    IGNORE_NULL_FIELDS,
    IGNORE_PARSE_ERRORS,
    ISO_8601,
    OF_CHANGES,
    SCHEMA,
    SUBJECT,
    TIMESTAMP_FORMAT,
    KafkaFormat,
)
from service.sql.catalog.option import Option, OptionType, TableRole, ignored, with_prefix
from service.sql.catalog.topic_options import OF_A_REGISTRY

FORMAT, VALUE_FORMAT, KEY_FORMAT = "format", "value.format", "key.format"
KEY_FIELDS, KEY_PREFIX, FIELDS_INCLUDE = "key.fields", "key.fields-prefix", "value.fields-include"
ALL, EXCEPT_KEY = "ALL", "EXCEPT_KEY"
ROW_FORMATS = tuple(name for name in KafkaFormat if name not in OF_CHANGES)
"""Of values that are rows; those of keys are all of them."""
_NO_DIMENSION = frozenset((TableRole.STREAM, TableRole.SINK))
_JSON = (
    Option(
        FAIL_ON_MISSING_FIELD,
        "Of a stream: whether a record without one of the declared columns, or of the fields of "
        "its ROWs, is a dead letter; else what is missing is NULL.",
        OptionType.FLAG,
    ),
    Option(
        IGNORE_PARSE_ERRORS,
        "Of a stream: whether what does not fit its column is NULL, and a record that is no object "
        "is passed over without a trace; else either is a dead letter.",
        OptionType.FLAG,
        roles=_NO_DIMENSION,
    ),
    Option(
        TIMESTAMP_FORMAT,
        "Of a sink: a blank stands between date and time of a timestamp (`SQL`), or a `T`. Of "
        "records that are read it may be either.",
        OptionType.CHOICE,
        default="SQL",
        choices=("SQL", ISO_8601),
    ),
    Option(
        IGNORE_NULL_FIELDS,
        "Of a sink: whether columns, and fields of ROWs, that are NULL are left out.",
        OptionType.FLAG,
    ),
    *ignored("json"),
)
_MARK = r"[!-/:-@\[-`{-~ ]"
_MARK_FORM = "one character of ASCII that is no letter, no digit and no line break"
_CSV = (
    Option(
        "field-delimiter",
        "What stands between cells.",
        default=",",
        pattern=rf"{_MARK}|\\t|\\u00[01][0-9a-fA-F]|[\x01-\x09\x0b\x0c\x0e-\x1f]",
        form=_MARK_FORM + r"; the tab as \t, others as \u0001",
    ),
    Option(
        "quote-character",
        "What stands around a cell with such characters; in it, it is doubled.",
        default='"',
        pattern=_MARK,
        form=_MARK_FORM,
    ),
    Option(
        "disable-quote-character",
        "Whether there are no quotes: they are characters like others.",
        OptionType.FLAG,
    ),
    Option(
        "escape-character",
        "What stands before a character that is not meant as one of these; none when missing.",
        pattern=_MARK,
        form=_MARK_FORM,
    ),
    Option(
        "allow-comments",
        "Of a stream: whether a record that begins with # is passed over.",
        OptionType.FLAG,
    ),
    Option(
        IGNORE_PARSE_ERRORS,
        "Of a stream: whether a cell that does not fit its column, or is not there, is NULL, and a "
        "record that is no row is passed over without a trace; else either is a dead letter.",
        OptionType.FLAG,
        roles=_NO_DIMENSION,
    ),
    Option(
        "array-element-delimiter",
        "What stands between the elements of an ARRAY, or the fields of a ROW, in a cell.",
        default=";",
        pattern=r"[^\x00-\x1f\x7f]{1,16}",
        form="1 to 16 printable characters",
    ),
    Option(
        "null-literal",
        "The text of a cell that is NULL. When missing no cell is; a sink writes NULL as an empty "
        "one.",
        pattern=r"[^\x00-\x1f\x7f]{0,128}",
        form="at most 128 printable characters",
    ),
    Option(
        "write-bigdecimal-in-scientific-notation",
        "Of a sink: whether DECIMAL is written without zeros at its end, 100000 as 1E+5; else with "
        "all digits of its scale.",
        OptionType.FLAG,
        default="true",
    ),
)
_RAW = (
    Option(
        "charset",
        "Of a STRING: how its characters are bytes. A sink takes those that have all characters.",
        OptionType.CHOICE,
        default="UTF-8",
        choices=tuple(CHARSETS),
    ),
    Option(
        "endianness",
        "Of a number: whether its highest or its lowest byte comes first.",
        OptionType.CHOICE,
        default="big-endian",
        choices=("big-endian", "little-endian"),
    ),
)
_AVRO = (
    Option(
        LEGACY_TIMESTAMPS,
        "Whether TIMESTAMP(3) is an instant of Avro, `timestamp-millis`, as in old versions of "
        "Flink, and TIMESTAMP_LTZ is nothing; else TIMESTAMP is `local-timestamp-…`, TIMESTAMP_LTZ "
        "`timestamp-…`. Of records that name their schema either is read.",
        OptionType.FLAG,
        default="true",
    ),
)
_ENCODING = Option(
    "encoding",
    "Records are binary Avro.",
    OptionType.CHOICE,
    default="binary",
    choices=("binary",),
)
_CONFLUENT = (
    Option(
        SUBJECT,
        "Of a sink: under which subject it registers its schema; the topic's name and `-value`, of "
        "a key `-key`, when missing.",
        pattern=r"[^\x00-\x1f\x7f]{1,256}",
        form="1 to 256 printable characters",
    ),
    Option(
        SCHEMA,
        "Of a sink: the schema that it registers, in JSON; that of the columns when missing. Names "
        "of records, documentation and defaults may be others than those of the columns' schema.",
        pattern=r"(?s:.{1,65536})",
        form="a schema of Avro in JSON",
        roles=frozenset((TableRole.SINK,)),
    ),
)
OPTIONS_OF_FORMATS = (
    *with_prefix(f"{KafkaFormat.JSON}.", *_JSON),
    *with_prefix(f"{KafkaFormat.CSV}.", *_CSV),
    *with_prefix(f"{KafkaFormat.RAW}.", *_RAW),
    *with_prefix(f"{KafkaFormat.AVRO}.", _ENCODING, *_AVRO),
    *with_prefix(f"{KafkaFormat.AVRO_CONFLUENT}.", *OF_A_REGISTRY, *_CONFLUENT, *_AVRO),
)
