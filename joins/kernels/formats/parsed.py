"""What a decoder makes of keys or values, and the dialect of CSV, which encoders share."""

import re
from dataclasses import dataclass

import pyarrow as pa

from joins.plan.formats import RecordFormat


@dataclass(frozen=True, slots=True)
class BadRow:
    """A value that gave no row.

    Attributes:
        row: its position in the input.
        reason: what is wrong with it, naming the field where that is known.
    """

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class ParsedRows:
    """The good rows in input order, and the bad ones; what is in neither is passed over on purpose.

    Attributes:
        batch: the good rows, with exactly the schema asked for.
        row_index: the position of each good row in the input.
        bad: in input order.
    """

    batch: pa.RecordBatch
    row_index: pa.Int64Array
    bad: tuple[BadRow, ...]


@dataclass(frozen=True, slots=True)
class CsvDialect:
    """The characters of a table's CSV, each of one byte; by Flink's names.

    Attributes:
        delimiter: between cells (`field-delimiter`).
        quote: around a cell that has such characters, doubled in it (`quote-character`); None with
            `disable-quote-character`.
        escape: before a character that is not meant as one of these (`escape-character`).
        has_comments: lines that begin with `#` are none of the rows (`allow-comments`).
        null: the text of a cell, quoted or not, that is NULL (`null-literal`); None for no text.
        elements: between the parts of an ARRAY or a ROW (`array-element-delimiter`).
        is_scientific: DECIMAL is written without zeros at its end, in powers of ten where it has
            some before its point (`write-bigdecimal-in-scientific-notation`).
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    has_comments: bool = False
    null: str | None = None
    elements: str = ";"
    is_scientific: bool = True


def dialect_of(form: RecordFormat) -> CsvDialect:
    """What the options of a format say."""
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
    r"""The character that an option names, as itself, `\t` or `\u0001`; None if it is none."""
    if text == "\\t":
        return "\t"
    if re.fullmatch(r"\\u00[0-7][0-9a-fA-F]", text):
        return chr(int(text[2:], 16))
    return text if len(text) == 1 else None
