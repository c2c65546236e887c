"""Formats of rows: their options, one table for all roles, and the formats of a topic."""

from joins.kernels.formats.avro_schema import LEGACY_TIMESTAMPS
from joins.kernels.formats.decoders import RecordColumns
from joins.plan.connections import RegistryOptions
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
    WITH_REGISTRY,
    KafkaFormat,
    RecordFormat,
    RecordKey,
)
from joins.plan.plan import Field
from service.sql.catalog.format_columns import check_format
from service.sql.catalog.option import Option, OptionType, TableRole, ignored, with_prefix
from service.sql.catalog.option_values import FORMAT_OPTION, OptionValues
from service.sql.catalog.topic_options import (
    AUTH_SOURCE,
    OF_A_REGISTRY,
    SSL_CA,
    SSL_CERT,
    SSL_KEY,
    URL,
    USER_INFO,
)
from service.sql.text.script import suggestion

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


_OF_THE_REGISTRY = (URL, AUTH_SOURCE, USER_INFO, SSL_CA, SSL_CERT, SSL_KEY)


def value_format(values: OptionValues) -> RecordFormat:
    if values.text(VALUE_FORMAT) is None:
        named = values.required(FORMAT)
    elif values.is_set(FORMAT):
        raise values.error(
            VALUE_FORMAT, "both format and value.format are given", hint="Remove one of the two."
        )
    else:
        named = values.required(VALUE_FORMAT)
    form = KafkaFormat(named)
    _check_owners(values, form)
    return _format(values, form, _value_prefixes(values, form))


def record_columns(values: OptionValues, fields: tuple[Field, ...]) -> RecordColumns:
    columns = RecordColumns(fields, value_format(values), _record_key(values, fields))
    return _check_columns(values, columns)


def keyed_columns(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> RecordColumns:
    """The columns of an `upsert-kafka` table, whose record key is the primary key."""
    key = _key_of(values, fields, primary_key)
    return _check_columns(values, RecordColumns(fields, value_format(values), key))


def _record_key(values: OptionValues, fields: tuple[Field, ...]) -> RecordKey | None:
    values.require_pair(KEY_FIELDS, KEY_FORMAT)
    written = values.text(KEY_FIELDS)
    if written is None:
        for option in (KEY_PREFIX, FIELDS_INCLUDE):
            if values.is_set(option):
                values.require_beside(option, KEY_FIELDS)
        return None
    names = tuple(name.strip() for name in written.split(";"))
    for field in fields:
        if field.name in names and field.type.is_nested:
            raise values.error(
                KEY_FIELDS,
                f'key.fields names "{field.name}", which is {field.type.name}',
                hint="Name scalar columns; give the value of the key a separate column.",
            )
    known = [field.name for field in fields]
    for name in names:
        if name not in known or names.count(name) > 1:
            raise values.error(
                KEY_FIELDS,
                f'key.fields names "{name}", which is not a column or is listed twice',
                hint=suggestion(name, known, "Columns are " + ", ".join(known) + "."),
            )
    return _key_of(values, fields, names)


def _key_of(values: OptionValues, fields: tuple[Field, ...], names: tuple[str, ...]) -> RecordKey:
    form = KafkaFormat(values.required(KEY_FORMAT))
    is_in_value = values.required(FIELDS_INCLUDE) == ALL
    prefix = values.text(KEY_PREFIX) or ""
    if prefix and is_in_value:
        raise values.error(
            KEY_PREFIX,
            f"{KEY_PREFIX} is set, but the value also has the key columns",
            hint=f"Write '{FIELDS_INCLUDE}' = '{EXCEPT_KEY}', or remove the prefix.",
        )
    for name in names:
        if not name.startswith(prefix) or name == prefix:
            raise values.error(
                KEY_PREFIX,
                f'column "{name}" of the key does not begin with "{prefix}"',
                hint="Start the names of all key columns with the prefix, followed by at least "
                "one character.",
            )
    if not is_in_value and len(names) == len(fields):
        raise values.error(
            FIELDS_INCLUDE,
            f"with {EXCEPT_KEY} no column is left for the value",
            hint=f"Write '{ALL}', or declare a column of the value.",
        )
    return RecordKey(names, _format(values, form, _key_prefixes(form)), prefix, is_in_value)


def _check_columns(values: OptionValues, columns: RecordColumns) -> RecordColumns:
    check_format(
        values, columns.value, columns.of_value, _value_prefixes(values, columns.value.name)
    )
    if columns.key is not None:
        form = columns.key.format
        check_format(values, form, columns.of_key, _key_prefixes(form.name))
    return columns


def _value_prefixes(values: OptionValues, form: KafkaFormat) -> tuple[str, ...]:
    return (f"{form}.",) if values.is_set(FORMAT) else (f"value.{form}.", f"{form}.")


def _key_prefixes(form: KafkaFormat) -> tuple[str, ...]:
    return (f"key.{form}.",)


def _format(values: OptionValues, form: KafkaFormat, prefixes: tuple[str, ...]) -> RecordFormat:
    options = _options(values, prefixes)
    if form not in WITH_REGISTRY:
        return RecordFormat(form, options)
    named = (prefix for prefix in prefixes if values.is_set(prefix + URL))
    registry = _registry(values, next(named, prefixes[-1]))
    own = tuple((key, text) for key, text in options if key not in _OF_THE_REGISTRY)
    return RecordFormat(form, own, registry)


def _registry(values: OptionValues, prefix: str) -> RegistryOptions:
    values.require_pair(prefix + AUTH_SOURCE, prefix + USER_INFO)
    values.require_pair(prefix + SSL_CERT, prefix + SSL_KEY)
    url = values.required(prefix + URL)
    for key in (prefix + SSL_CA, prefix + SSL_CERT):
        if values.is_set(key) and not url.startswith("https:"):
            raise values.error(
                key,
                f'option "{key}" has no effect with an http address',
                hint="Write the registry's address with https://, or remove the option.",
            )
    return RegistryOptions(
        url,
        user_info=values.text(prefix + USER_INFO),
        ca=values.text(prefix + SSL_CA),
        cert=values.text(prefix + SSL_CERT),
        key=values.text(prefix + SSL_KEY),
    )


def _options(values: OptionValues, prefixes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    options: dict[str, str] = {}
    for key, node in sorted(values.nodes.items()):
        for prefix in prefixes:
            own = key.removeprefix(prefix)
            if own == key:
                continue
            if own in options:
                raise values.error(
                    key, f'option "{key}" is given with and without value.', hint="Remove one."
                )
            options[own] = node.value
    return tuple(options.items())


def _check_owners(values: OptionValues, value: KafkaFormat) -> None:
    key_format = values.text(KEY_FORMAT)
    for key in values.nodes:
        match = FORMAT_OPTION.match(key)
        if match is None:
            continue
        role, owner = match["role"], match["format"]
        if role == "key.":
            _check_owner(values, key, key_format, KEY_FORMAT, owner)
        elif role == "value." and values.is_set(FORMAT):
            raise values.error(
                key,
                f'option "{key}" begins with value., but the format is named by format',
                hint=f"Write '{VALUE_FORMAT}' in place of '{FORMAT}', or leave value. out.",
            )
        else:
            named = FORMAT if values.is_set(FORMAT) else VALUE_FORMAT
            _check_owner(values, key, value, named, owner)


def _check_owner(values: OptionValues, key: str, form: str | None, named: str, owner: str) -> None:
    if form == owner:
        return
    there = f"format {form}" if form is not None else f"no {named}"
    raise values.error(
        key,
        f'option "{key}" has no effect with {there}',
        hint=f"Write '{named}' = '{owner}', or remove the option.",
    )
