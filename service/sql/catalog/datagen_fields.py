"""What `datagen` makes of each column: its options, and those of the parts of nested columns."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from joins.plan.plan import COLLECTION_SIZE, DatagenField, DatagenKind, DatagenSource, Field
from joins.plan.types import SqlType, TypeName
from service.sql.catalog.option_values import OptionValues
from service.sql.grammar.type_rules import INTEGER_BITS
from service.sql.text.errors import suggestion

_MAX_VALUES = 1_000  # of a column in one row
_SEQUENCE_KEYS = ("start", "end")
_NUMBERS = (*INTEGER_BITS, TypeName.FLOAT, TypeName.DOUBLE, TypeName.DECIMAL)
_SCALARS = (*_NUMBERS, TypeName.STRING, TypeName.BOOLEAN)
_COLLECTIONS = (TypeName.ARRAY, TypeName.MAP)


@dataclass(frozen=True, slots=True)
class _Made:
    """A column or a part of one: `name` is its path; `count` values of it are in each row."""

    name: str
    type: SqlType
    count: int = 1
    in_collection: bool = False


def datagen_source(values: OptionValues, fields: tuple[Field, ...]) -> DatagenSource:
    """The generator of a table.

    Raises:
        SqlError: it cannot make a column, or an option does not fit its column.
    """
    made = [part for field in fields for part in _parts(values, _Made(field.name, field.type))]
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
    return DatagenSource(
        rows_per_second=int(values.required("rows-per-second")),
        number_of_rows=values.number("number-of-rows"),
        fields=tuple(rule for part in made if (rule := _rule(values, part)) is not None),
    )


def _parts(values: OptionValues, made: _Made) -> Iterator[_Made]:
    """A column and all its parts, as options name them: `items.element.n`, `labels.key`."""
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
        yield from _parts(values, _Made(f"{made.name}.{part.name}", part.type, count, inside))


def _rule(values: OptionValues, made: _Made) -> DatagenField | None:
    """How a column or a part is made; None of a ROW, which is its parts."""
    if not made.type.is_nested and made.type.name not in _SCALARS:
        raise values.error(
            f"fields.{made.name}.kind",
            f'datagen cannot make column "{made.name}" of {made.type}',
            hint="Use BOOLEAN, a number or STRING, or a computed column with a CAST.",
        )
    prefix = f"fields.{made.name}."
    start, end = values.text(prefix + "start"), values.text(prefix + "end")
    kind = values.text(prefix + "kind") or ("random" if start is None is end else "sequence")
    allowed = _SEQUENCE_KEYS if kind == "sequence" else _random_keys(made.type)
    for suffix in ("min", "max", "start", "end", "length"):
        if prefix + suffix in values.nodes and suffix not in allowed:
            raise values.error(
                prefix + suffix,
                f'option "{prefix}{suffix}" has no effect on a {kind} {made.type}',
                hint="Remove it" + (f", or use {', '.join(allowed)}." if allowed else "."),
            )
    if kind == "sequence":
        _check_sequence(values, made)
    if made.type.name is TypeName.ROW:
        return None
    bounds = ("start", "end") if kind == "sequence" else ("min", "max")
    _check_bounds(values, made, *(prefix + suffix for suffix in bounds))
    return DatagenField(
        name=made.name,
        generator=DatagenKind(kind),
        minimum=_plain(values, made, prefix + "min"),
        maximum=_plain(values, made, prefix + "max"),
        start=start,
        end=end,
        length=values.number(prefix + "length"),
    )


def _random_keys(column_type: SqlType) -> tuple[str, ...]:
    if column_type.name in _NUMBERS:
        return ("min", "max")
    if column_type.name in (TypeName.STRING, *_COLLECTIONS):
        return ("length",)
    return ()


def _check_sequence(values: OptionValues, made: _Made) -> None:
    if made.type.name not in (*_NUMBERS, TypeName.STRING) or made.in_collection:
        where = ", of which a row has many" if made.in_collection else ""
        raise values.error(
            f"fields.{made.name}.kind",
            f'column "{made.name}" is {made.type}{where}, which has no sequence',
            hint="Use a sequence for numbers and STRING, outside of ARRAY and MAP.",
        )
    for suffix in _SEQUENCE_KEYS:
        values.required(f"fields.{made.name}.{suffix}")


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
    """The bound as text, an integer's without exponent or point."""
    number = _bound(values, field, key)
    if number is not None and field.type.name in INTEGER_BITS:
        return str(int(number))
    return values.text(key)


def _bound(values: OptionValues, field: _Made, key: str) -> Decimal | None:
    text = values.text(key)
    if text is None:
        return None
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
