"""Which columns and options each format, and Delta, supports."""

import string
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from joins.kernels.formats.avro_schema import NoAvroError, schema_to_write
from joins.kernels.formats.decoders import RecordColumns
from joins.kernels.formats.parsed import dialect_of
from joins.plan.formats import (
    FAIL_ON_MISSING_FIELD,
    IGNORE_PARSE_ERRORS,
    OF_ALL_CHARACTERS,
    KafkaFormat,
    RecordFormat,
)
from joins.plan.plan import Field, MetadataField
from joins.plan.types import SqlType, TypeName
from service.sql.catalog.option_values import OptionValues

_MARKS = ("escape-character", "quote-character", "field-delimiter")
_OF_RAW = frozenset(
    {
        *(TypeName.STRING, TypeName.BYTES, TypeName.BOOLEAN, TypeName.FLOAT, TypeName.DOUBLE),
        *(TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT, TypeName.BIGINT),
    }
)
_LETTERS_AND_SIGNS = frozenset(string.ascii_letters + string.digits + "+-.:/= ")
"""What is in cells of other types than STRING."""


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why columns or options do not fit a format.

    `option` is without its prefix. Without `option` and `column`, the fault is the table's.
    """

    message: str
    hint: str
    option: str | None = None
    column: str | None = None


def check_format(
    values: OptionValues, form: RecordFormat, columns: Sequence[Field], prefixes: Sequence[str]
) -> None:
    """Refuse a key or value whose `columns` do not fit the format.

    `prefixes` are those of the format's options, for the error's position.
    """
    misfit = _CHECKS[form.name](form, columns) if form.name in _CHECKS else None
    if misfit is not None:
        keys = [f"{prefix}{misfit.option}" for prefix in prefixes]
        key = next((key for key in keys if values.is_set(key)), "")
        raise values.error(key, misfit.message, hint=misfit.hint)


def refusal_of_sink(columns: RecordColumns) -> Misfit | None:
    """Why written rows could not be read back; None if they can."""
    of_key = () if columns.key is None else ((columns.key.format, columns.of_key),)
    for form, fields in ((columns.value, columns.of_value), *of_key):
        check = _CHECKS_OF_SINKS.get(form.name)
        misfit = None if check is None else check(form, fields)
        if misfit is not None:
            return misfit
    return None


def _of_json(form: RecordFormat, _: Sequence[Field]) -> Misfit | None:
    if form.flag(FAIL_ON_MISSING_FIELD) and form.flag(IGNORE_PARSE_ERRORS):
        return Misfit(
            f'"{IGNORE_PARSE_ERRORS}" and "{FAIL_ON_MISSING_FIELD}" are both true',
            "Remove one of the two.",
            IGNORE_PARSE_ERRORS,
        )
    return None


def _of_csv(form: RecordFormat, columns: Sequence[Field]) -> Misfit | None:
    options = dict(form.options)
    if "quote-character" in options and form.flag("disable-quote-character"):
        return Misfit(
            "quote-character is set, but quotes are disabled",
            "Remove quote-character, or disable-quote-character.",
            "quote-character",
        )
    dialect = dialect_of(form)
    marks = [mark for mark in (dialect.delimiter, dialect.quote, dialect.escape) if mark]
    if len(set(marks)) < len(marks):
        return Misfit(
            "delimiter, quote and escape character are not different",
            "Choose three different characters.",
            next(option for option in _MARKS if option in options),
        )
    if dialect.null is not None and any(mark in dialect.null for mark in marks):
        return Misfit(
            f'null-literal "{dialect.null}" contains a delimiter, quote or escape character',
            "Choose a text without delimiter, quote and escape character.",
            "null-literal",
        )
    for column in columns:
        if not _is_in_a_cell(column.type):
            return Misfit(
                f'column "{column.name}" is {column.type}, which a csv cell cannot hold',
                "Use a scalar, an ARRAY or a ROW of scalars, a STRING, or format json.",
            )
    return None


def _of_raw(_: RecordFormat, columns: Sequence[Field]) -> Misfit | None:
    if len(columns) != 1:
        names = ", ".join(column.name for column in columns)
        return Misfit(
            f"raw has one column, not {len(columns)}: {names}",
            "Leave one column, or make others the key with key.fields and "
            "'value.fields-include' = 'EXCEPT_KEY'.",
        )
    if columns[0].type.name not in _OF_RAW:
        return Misfit(
            f'column "{columns[0].name}" is {columns[0].type}, which format raw does not support',
            "Declare STRING, BYTES, BOOLEAN, an integer, FLOAT or DOUBLE.",
        )
    return None


def _of_raw_sink(form: RecordFormat, columns: Sequence[Field]) -> Misfit | None:
    charset = form.text("charset", "UTF-8")
    if columns[0].type.name is TypeName.STRING and charset not in OF_ALL_CHARACTERS:
        return Misfit(
            f'column "{columns[0].name}" may have characters that {charset} cannot encode',
            "Write " + " or ".join(OF_ALL_CHARACTERS) + ".",
        )
    return None


def _of_avro(form: RecordFormat, columns: Sequence[Field]) -> Misfit | None:
    try:
        schema_to_write(form, columns)
    except NoAvroError as exc:
        return Misfit(str(exc), exc.hint)
    return None


def _is_in_a_cell(kind: SqlType) -> bool:
    if kind.name is TypeName.MAP:
        return False
    return all(not part.type.is_nested for part in kind.members)


def _of_changes_in_avro(form: RecordFormat, _: Sequence[Field]) -> Misfit:
    return Misfit(
        f"format {form.name} cannot be written",
        "Write 'format' = 'json' or 'debezium-json', and remove the options of Avro.",
    )


def _of_csv_sink(form: RecordFormat, columns: Sequence[Field]) -> Misfit | None:
    """Parts of a cell have no quotes; a STRING column needs quotes or escapes."""
    dialect = dialect_of(form)
    for column in columns:
        kinds = [part.type.name for part in column.type.members] or [column.type.name]
        if column.type.is_nested and (
            TypeName.STRING in kinds or set(dialect.elements) & _LETTERS_AND_SIGNS
        ):
            return Misfit(
                f'column "{column.name}" is {column.type}, whose parts csv cannot separate',
                "Write json; or write an ARRAY or a ROW of other parts than STRING, with a "
                "delimiter that is none of their characters.",
            )
        if TypeName.STRING in kinds and dialect.quote is None and dialect.escape is None:
            return Misfit(
                f'column "{column.name}" is STRING, and csv has neither quotes nor escapes',
                "Give escape-character, or leave the quotes.",
            )
    return None


_CHECKS: dict[KafkaFormat, Callable[[RecordFormat, Sequence[Field]], Misfit | None]] = {
    KafkaFormat.JSON: _of_json,
    KafkaFormat.CSV: _of_csv,
    KafkaFormat.RAW: _of_raw,
    KafkaFormat.AVRO: _of_avro,
}
_CHECKS_OF_SINKS: dict[KafkaFormat, Callable[[RecordFormat, Sequence[Field]], Misfit | None]] = {
    KafkaFormat.CSV: _of_csv_sink,
    KafkaFormat.RAW: _of_raw_sink,
    KafkaFormat.AVRO_CONFLUENT: _of_avro,
    KafkaFormat.DEBEZIUM_AVRO_CONFLUENT: _of_changes_in_avro,
}


# Delta tables; source: Delta's protocol, "Column names", and the columns of "Change data files"
# ----------------------------------------------------------------------------------------------

_SIGNS = " ,;{}()="
_OF_THE_CHANGE_FEED = ("_change_type", "_commit_version", "_commit_timestamp")


def alike_names(fields: Sequence[Field | MetadataField]) -> Misfit | None:
    """Columns, or fields of one ROW, whose names differ in case only: Delta refuses them."""
    for column, place, names in _levels(fields):
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(_folded(name), name)
            if other != name:
                return Misfit(
                    f'columns "{place}{other}" and "{place}{name}" differ only in case, which '
                    "Delta ignores",
                    "Rename one of the two.",
                    column=column or name,
                )
    return None


def _folded(name: str) -> str:
    upper = (sign.upper() if len(sign.upper()) == 1 else sign for sign in name)
    return "".join(sign.lower()[0] for sign in upper)


def refusal_of_delta(fields: Sequence[Field], row_metadata: Sequence[str]) -> Misfit | None:
    """Why a Delta table cannot have these columns beside the row metadata; None if it can."""
    for column, place, names in _levels(fields):
        for name in names:
            sign = next((each for each in name if each in _SIGNS or each < " "), None)
            if sign is not None or not name:
                what = "no name" if sign is None else f"{sign!r} in its name"
                return Misfit(
                    f'column "{place}{name}" has {what}, which Delta does not allow',
                    "Use letters, digits and _ in its name.",
                    column=column or name,
                )
            taken = () if place else (*row_metadata, *_OF_THE_CHANGE_FEED)
            if _folded(name) in taken:
                is_ours = _folded(name) in row_metadata
                owner = "row metadata" if is_ours else "change data feed"
                way_out = " or write 'row-metadata' = 'false'" if is_ours else ""
                return Misfit(
                    f'column name "{name}" is reserved for the {owner}',
                    f"Rename the column{way_out}.",
                    column=name,
                )
    return alike_names(fields)


def _levels(fields: Sequence[Field | MetadataField]) -> Iterator[tuple[str, str, list[str]]]:
    """Sibling names at every depth: (column, path before them, names)."""
    yield "", "", [item.name for item in fields]
    for item in fields:
        for place, names in _inner(item.type, item.name):
            yield item.name, place, names


def _inner(kind: SqlType, place: str) -> Iterator[tuple[str, list[str]]]:
    """The names in a type; elements of an ARRAY, keys and values of a MAP have none."""
    if kind.name is TypeName.ROW:
        yield f"{place}.", [member.name for member in kind.members]
    for member in kind.members:
        own = f".{member.name}" if kind.name is TypeName.ROW else "[]"
        yield from _inner(member.type, f"{place}{own}")
