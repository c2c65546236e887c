"""Results of decoders, and the dialect of CSV, which encoders share."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from joins.plan.formats import RecordFormat


@dataclass(frozen=True, slots=True)
class BadRow:
    """A value that gives no row: its position in the input, and a reason that names the field."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """Good and bad rows in input order; values in neither are skipped on purpose."""

    batch: pa.RecordBatch
    row_index: pa.Int64Array
    bad: tuple[BadRow, ...]


def batch_of(columns: Sequence[pa.Array], schema: pa.Schema, count: int) -> pa.RecordBatch:
    if columns:
        return pa.RecordBatch.from_arrays(columns, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * count, pa.struct([])))


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """Characters of a table's CSV, each of one byte; in brackets Flink's options."""

    delimiter: str = ","  # between cells (`field-delimiter`)
    # around a cell with special characters, doubled in it (`quote-character`); None with
    # `disable-quote-character`
    quote: str | None = '"'
    escape: str | None = None  # before a literal special character (`escape-character`)
    has_comments: bool = False  # lines that begin with `#` are skipped (`allow-comments`)
    null: str | None = None  # text of a NULL cell, quoted or not (`null-literal`)
    elements: str = ";"  # between the parts of an ARRAY or a ROW (`array-element-delimiter`)
    # a DECIMAL is written without trailing zeros, with an exponent if it is large
    # (`write-bigdecimal-in-scientific-notation`)
    is_scientific: bool = True


def dialect_of(form: RecordFormat) -> CsvDialect:
    plain = CsvDialect()
    has_quotes = not form.flag("disable-quote-character")
    escape = form.text("escape-character")
    return CsvDialect(
        delimiter=character(form.text("field-delimiter", plain.delimiter)) or plain.delimiter,
        quote=form.text("quote-character", '"') if has_quotes else None,
        escape=escape or None,
        has_comments=form.flag("allow-comments"),
        null=dict(form.options).get("null-literal"),
        elements=form.text("array-element-delimiter", plain.elements),
        is_scientific=form.text("write-bigdecimal-in-scientific-notation", "true") == "true",
    )


def character(text: str) -> str | None:
    r"""The character of an option: itself, `\t` or `\u0001`; None if it is not one character."""
    if text == "\\t":
        return "\t"
    if re.fullmatch(r"\\u00[0-7][0-9a-fA-F]", text):
        return chr(int(text[2:], 16))
    return text if len(text) == 1 else None
