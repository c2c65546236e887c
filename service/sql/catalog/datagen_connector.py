"""The connector `datagen`: values for each column, from the options `fields.<column>.…`."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from joins.plan.durations import duration_ms
from joins.plan.faker import (
    BETWEEN,
    DECIMALS,
    FUTURE,
    OPTION,
    PAST,
    TEXTS,
    ExpressionFault,
    FakerCall,
    parts_of,
    unknown_calls,
)
from joins.plan.plan import COLLECTION_SIZE, DatagenField, DatagenKind, DatagenSource, Field
from joins.plan.types import SqlType, TypeName
from service.sql.catalog.option import Option, OptionType
from service.sql.catalog.option_values import Connector, Endpoints, OptionValues
from service.sql.catalog.watermarks import WATERMARK_OPTIONS
from service.sql.grammar.type_parser import INTEGER_BITS
from service.sql.text.script import suggestion

_OPTIONS = (
    Option(
        "rows-per-second",
        "Rows a second.",
        OptionType.NUMBER,
        default="10000",
        lowest=1,
        highest=10_000_000,
    ),
    Option(
        "number-of-rows",
        "Rows until the source ends, and the job with it; unbounded when missing.",
        OptionType.NUMBER,
        lowest=1,
    ),
    Option(
        "fields.#.kind",
        "How a column is made; a sequence when start or end is given.",
        OptionType.CHOICE,
        choices=("random", "sequence"),
    ),
    Option("fields.#.min", "Smallest value of a random number.", pattern=r"[+-]?[0-9.eE+-]{1,60}"),
    Option("fields.#.max", "Largest value of a random number.", pattern=r"[+-]?[0-9.eE+-]{1,60}"),
    Option("fields.#.start", "First value of a sequence.", pattern=r"[+-]?\d{1,40}"),
    Option("fields.#.end", "Last value of a sequence, which bounds it.", pattern=r"[+-]?\d{1,40}"),
    Option(
        "fields.#.length",
        "Length of a random text, 100 when missing; of an ARRAY or a MAP, 3 when missing.",
        OptionType.NUMBER,
        lowest=1,
        highest=65_536,
    ),
    Option(
        "fields.#.expression",
        "What values are made by: text with parts such as #{Name.fullName}, #{Internet.uuid}, "
        "#{Options.option 'a','b'}, #{Number.numberBetween '1','9'} (below 9), "
        "#{Number.randomDouble '2','1','9'} (of two digits), "
        "#{Date.past '15','SECONDS'}.",
    ),
    Option(
        "fields.#.skew",
        "Exponent of Zipf's law: the first of the possible values are the most frequent, as in "
        "real keys; 1.1 is usual.",
        pattern=r"[0-9]{1,2}(\.[0-9]{1,6})?",
    ),
    Option(
        "fields.#.null-rate", "Share of the values that are NULL.", pattern=r"0(\.[0-9]{1,6})?|1"
    ),
    Option(
        "fields.#.max-past",
        "How far a TIMESTAMP lies before the clock at most; it is the clock's when missing.",
        OptionType.DURATION,
        lowest=0,
        highest=3_650 * 86_400_000,
    ),
    *WATERMARK_OPTIONS,
)
_MAX_VALUES = 1_000  # of a column in one row
_SEQUENCE_KEYS = ("start", "end")
_KEYS_OF_ALL = ("null-rate",)
_SUFFIXES = ("min", "max", "start", "end", "length", "skew", "null-rate", "max-past")
_NUMBERS = (*INTEGER_BITS, TypeName.FLOAT, TypeName.DOUBLE, TypeName.DECIMAL)
_TIMES = (TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
_SCALARS = (
    *(*_NUMBERS, TypeName.STRING, TypeName.BOOLEAN),
    *(*_TIMES, TypeName.DATE, TypeName.TIME),
)
_FRACTIONS = (TypeName.FLOAT, TypeName.DOUBLE, TypeName.DECIMAL)
_DATES = (*_TIMES, TypeName.DATE)
_OF_ONE_PART = {BETWEEN: _NUMBERS, DECIMALS: _FRACTIONS, PAST: _DATES, FUTURE: _DATES}
_COLLECTIONS = (TypeName.ARRAY, TypeName.MAP)


@dataclass(frozen=True, slots=True)
class _Made:
    """A column or a part of one; each row has `count` values of it."""

    name: str
    type: SqlType
    count: int = 1
    in_collection: bool = False
    nullable: bool = True


def _endpoints(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    made = [part for field in fields for part in _parts(values, _of(field))]
    known = Counter(part.name for part in made)
    for key in values.nodes:
        name, _, suffix = key.removeprefix("fields.").rpartition(".")
        if key.startswith("fields.") and name not in known:
            raise values.error(
                key,
                f'option "{key}" names column "{name}", which is not in the table',
                hint=suggestion(
                    key,
                    (f"fields.{column}.{suffix}" for column in known),
                    "Columns are " + ", ".join(known)[:300] + ".",
                ),
            )
    for name, count in known.items():
        if count > 1:
            raise values.error(
                name,
                f'a column of datagen and a part of another one are both called "{name}"',
                hint="Rename the column.",
            )
    source = DatagenSource(
        rows_per_second=int(values.required("rows-per-second")),
        number_of_rows=values.number("number-of-rows"),
        fields=tuple(rule for part in made if (rule := _rule(values, part)) is not None),
    )
    return Endpoints(stream=source)


def _parts(values: OptionValues, made: _Made) -> Iterator[_Made]:
    """A column and all its parts, by their option names: `items.element.n`, `labels.key`."""
    yield made
    count, is_collection = made.count, made.type.name in _COLLECTIONS
    if is_collection:
        key = f"fields.{made.name}.length"
        count *= int(values.text(key) or COLLECTION_SIZE)
        if count > _MAX_VALUES:
            raise values.error(
                key,
                f'column "{made.name}" of datagen has {count} values a row, expected at most '
                f"{_MAX_VALUES}",
                hint=f"Give '{key}' a smaller value.",
            )
    for part in made.type.members:
        inside = made.in_collection or is_collection
        name = f"{made.name}.{part.name}"
        yield from _parts(values, _Made(name, part.type, count, inside, part.nullable))


def _of(field: Field) -> _Made:
    return _Made(field.name, field.type, nullable=field.nullable)


def _rule(values: OptionValues, made: _Made) -> DatagenField | None:
    """How a column or part is generated; None for a ROW, which consists of its parts."""
    if not made.type.is_nested and made.type.name not in _SCALARS:
        raise values.error(
            f"fields.{made.name}.kind",
            f'datagen cannot make column "{made.name}" of {made.type}',
            hint="Use BOOLEAN, a number, STRING, a date or a time; or a computed column with a "
            "CAST.",
        )
    prefix = f"fields.{made.name}."
    kind = _kind(values, made)
    if kind is DatagenKind.SEQUENCE:
        if made.type.name not in (*_NUMBERS, TypeName.STRING) or made.in_collection:
            where = ", which occurs many times in a row" if made.in_collection else ""
            raise values.error(
                f"fields.{made.name}.kind",
                f'column "{made.name}" is {made.type}{where}, which has no sequence',
                hint="Use a sequence for numbers and STRING, outside of ARRAY and MAP.",
            )
        for suffix in _SEQUENCE_KEYS:
            values.required(f"fields.{made.name}.{suffix}")
    if made.type.name is TypeName.ROW:
        return None
    bounds = _SEQUENCE_KEYS if kind is DatagenKind.SEQUENCE else ("min", "max")
    _check_bounds(values, made, *(prefix + suffix for suffix in bounds))
    key = prefix + "null-rate"
    rate = float(values.text(key) or 0)
    if rate and not made.nullable:
        raise values.error(
            key,
            f'option "{key}" produces NULL, and column "{made.name}" is NOT NULL',
            hint="Remove it, or remove NOT NULL.",
        )
    return DatagenField(
        name=made.name,
        generator=kind,
        minimum=_plain(values, made, prefix + "min"),
        maximum=_plain(values, made, prefix + "max"),
        start=values.text(prefix + "start"),
        end=values.text(prefix + "end"),
        length=values.number(prefix + "length"),
        expression=values.text(prefix + "expression"),
        skew=_skew(values, made, prefix + "skew"),
        null_rate=rate,
        max_past_ms=duration_ms(values.text(prefix + "max-past") or "0 s") or 0,
    )


def _kind(values: OptionValues, made: _Made) -> DatagenKind:
    prefix = f"fields.{made.name}."
    written, expression = values.text(prefix + "kind"), values.text(prefix + "expression")
    is_sequence = any(values.text(prefix + key) is not None for key in _SEQUENCE_KEYS)
    kind = DatagenKind(written or ("sequence" if is_sequence else "random"))
    what, none = f"{kind.value} {made.type}", tuple[str, ...]()
    allowed = _SEQUENCE_KEYS if kind is DatagenKind.SEQUENCE else _random_keys(made.type)
    if expression is not None:
        _check_expression(values, made, expression)
        kind, what = DatagenKind.RANDOM, "column with an expression"
        allowed, none = ("skew", "null-rate"), ("kind",)
    for suffix in (*_SUFFIXES, *none):
        if prefix + suffix in values.nodes and suffix not in allowed:
            raise values.error(
                prefix + suffix,
                f'option "{prefix}{suffix}" has no effect on a {what}',
                hint="Remove it" + (f", or use {', '.join(allowed)}." if allowed else "."),
                is_needless=True,
            )
    return kind


def _random_keys(column_type: SqlType) -> tuple[str, ...]:
    if column_type.name in INTEGER_BITS:
        return ("min", "max", "skew", *_KEYS_OF_ALL)
    if column_type.name in _NUMBERS:
        return ("min", "max", *_KEYS_OF_ALL)
    if column_type.name is TypeName.STRING:
        return ("length", *_KEYS_OF_ALL)
    if column_type.name in _TIMES:
        return ("max-past", *_KEYS_OF_ALL)
    if column_type.name in (TypeName.BOOLEAN, TypeName.DATE, TypeName.TIME):
        return _KEYS_OF_ALL
    return ("length",) if column_type.name in _COLLECTIONS else ()


def _check_expression(values: OptionValues, made: _Made, expression: str) -> None:
    key = f"fields.{made.name}.expression"
    try:
        parts = parts_of(expression)
    except ExpressionFault as exc:
        raise values.error(
            key,
            f'option "{key}" {exc}',
            hint="Parts are #{Name.fullName} and #{"
            + "}, #{".join(sorted(set(TEXTS) - {"Name.fullName"}))
            + "}, #{Options.option 'a','b'}, #{Number.numberBetween '1','9'}, "
            "#{Date.past '15','SECONDS'}.",
        ) from exc
    others = sorted(set(unknown_calls(expression)))
    if others and made.type.name is TypeName.STRING:
        values.note(key, f"words are made for #{{{'}, #{'.join(others)}}}, which is not known here")
    if made.type.name is TypeName.STRING:
        return
    only = parts[0] if len(parts) == 1 else None
    if isinstance(only, FakerCall):
        if made.type.name in _OF_ONE_PART.get(only.name, ()) and _fits(made.type, only):
            return
        if only.name == OPTION and made.type.name in _NUMBERS:
            for text in only.arguments:
                _number(values, made, key, text)
            return
    raise values.error(
        key,
        f'option "{key}" does not make values of {made.type}',
        hint="A number is made by #{Number.numberBetween '1','9'} or #{Options.option '1','2'}, a "
        "TIMESTAMP by #{Date.past '15','SECONDS'} or #{Date.future '15','SECONDS'}, a fraction by "
        "#{Number.randomDouble '2','1','9'} of two digits, each alone; "
        "STRING by all.",
    )


def _fits(column_type: SqlType, call: FakerCall) -> bool:
    """False for a DECIMAL that has too few digits for the numbers of a call."""
    if column_type.name is not TypeName.DECIMAL or call.name != DECIMALS:
        return True
    most = max(map(abs, call.bounds)) // 10**call.decimals
    whole = (column_type.precision or 0) - column_type.scale
    return call.decimals <= column_type.scale and most < 10**whole


def _skew(values: OptionValues, made: _Made, key: str) -> float | None:
    text = values.text(key)
    if text is None:
        return None
    low, high = f"fields.{made.name}.min", f"fields.{made.name}.max"
    if values.text(f"fields.{made.name}.expression") is None and not (
        {low, high} <= values.nodes.keys()
    ):
        raise values.error(
            key,
            f'option "{key}" needs "{low}" and "{high}"',
            hint=f"Add '{low}' and '{high}' to WITH (…): the smallest values are the most "
            "frequent.",
        )
    return float(text)


def _check_bounds(values: OptionValues, field: _Made, low_key: str, high_key: str) -> None:
    low, high = _bound(values, field, low_key), _bound(values, field, high_key)
    if (low is None) != (high is None) and field.type.name not in INTEGER_BITS:
        option, missing = (low_key, high_key) if high is None else (high_key, low_key)
        raise values.error(
            option, f'option "{option}" needs "{missing}"', hint=f"Add '{missing}' to WITH (…)."
        )
    if low is not None and high is not None and low > high:
        raise values.error(
            high_key,
            f'option "{high_key}" is {high}, below "{low_key}" {low}',
            hint="Swap the two values.",
        )


def _plain(values: OptionValues, field: _Made, key: str) -> str | None:
    number = _bound(values, field, key)
    if number is not None and field.type.name in INTEGER_BITS:
        return str(int(number))
    return values.text(key)


def _bound(values: OptionValues, field: _Made, key: str) -> Decimal | None:
    text = values.text(key)
    return None if text is None else _number(values, field, key, text)


def _number(values: OptionValues, field: _Made, key: str, text: str) -> Decimal:
    try:
        number = Decimal(text)
    except InvalidOperation as exc:
        raise values.error(
            key, f'option "{key}" is "{text}", expected a number', hint="Write 42 or 4.2."
        ) from exc
    bits = INTEGER_BITS.get(field.type.name)
    if bits is not None and not (
        number == number.to_integral_value() and -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    ):
        raise values.error(
            key,
            f'option "{key}" is {text}, which is not a value of {field.type}',
            hint=f"Give a whole number from {-(2 ** (bits - 1))} to {2 ** (bits - 1) - 1}.",
        )
    return number


def _faker(
    values: OptionValues, fields: tuple[Field, ...], primary_key: tuple[str, ...]
) -> Endpoints:
    """A table of flink-faker: the same rules, but each column has an expression."""
    values.notes.append(
        f'Table "{values.table}" is faker: datagen makes its rows, from the same expressions.'
    )
    types = {field.name: field.type.name for field in fields}
    for key in list(values.nodes):
        name, _, suffix = key.removeprefix("fields.").rpartition(".")
        if not key.startswith("fields."):
            continue
        if name.partition(".")[0] not in types:
            values.ignore(key, f'the table has no physical column "{name}"')
        elif types.get(name) is TypeName.ARRAY and suffix == "expression":
            element = f"fields.{name}.element.{suffix}"
            values.nodes[element] = replace(values.nodes.pop(key), key=element)
    return _endpoints(values, fields, primary_key)


DATAGEN = Connector("datagen", _OPTIONS, _endpoints)
FAKER = Connector("faker", _OPTIONS, _faker)
