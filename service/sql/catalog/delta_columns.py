"""What names columns of a Delta table cannot have, fields of its ROWs included.

Source: Delta's protocol, "Column names", and the reserved columns of "Change data files".
"""

from collections.abc import Iterator, Sequence

from joins.plan.plan import Field, MetadataField
from joins.plan.types import SqlType, TypeName
from service.sql.catalog.format_columns import Misfit

_SIGNS = " ,;{}()="
_OF_THE_CHANGE_FEED = ("_change_type", "_commit_version", "_commit_timestamp")


def alike_names(fields: Sequence[Field | MetadataField]) -> Misfit | None:
    """Of columns, or fields of one ROW, whose names differ in case only: Delta has one of them."""
    for column, place, names in _levels(fields):
        seen: dict[str, str] = {}
        for name in names:
            other = seen.setdefault(name.lower(), name)
            if other != name:
                return Misfit(
                    f'columns "{place}{other}" and "{place}{name}" differ in case only, and Delta '
                    "does not tell them apart",
                    "Rename one of the two.",
                    column=column or name,
                )
    return None


def refusal_of_delta(fields: Sequence[Field], row_metadata: Sequence[str]) -> Misfit | None:
    """Why a Delta table cannot have these columns beside those of the row metadata."""
    for column, place, names in _levels(fields):
        for name in names:
            sign = next((each for each in name if each in _SIGNS or each < " "), None)
            if sign is not None or not name:
                what = "no name" if sign is None else f"{sign!r} in its name"
                return Misfit(
                    f'column "{place}{name}" has {what}, which Delta does not take',
                    "Use letters, digits and _ in its name.",
                    column=column or name,
                )
            taken = () if place else (*row_metadata, *_OF_THE_CHANGE_FEED)
            if name.lower() in taken:
                is_ours = name.lower() in row_metadata
                owner = "row metadata" if is_ours else "change data feed"
                way_out = " or write 'row-metadata' = 'false'" if is_ours else ""
                return Misfit(
                    f'column name "{name}" is taken by the {owner}',
                    f"Rename the column{way_out}.",
                    column=name,
                )
    return alike_names(fields)


def _levels(fields: Sequence[Field | MetadataField]) -> Iterator[tuple[str, str, list[str]]]:
    """The names that stand beside each other, at any depth: the column, the place before them."""
    yield "", "", [item.name for item in fields]
    for item in fields:
        for place, names in _inner(item.type, item.name):
            yield item.name, place, names


def _inner(kind: SqlType, place: str) -> Iterator[tuple[str, list[str]]]:
    """The names in a type; the element of an ARRAY, key and value of a MAP have none."""
    if kind.name is TypeName.ROW:
        yield f"{place}.", [member.name for member in kind.members]
    for member in kind.members:
        own = f".{member.name}" if kind.name is TypeName.ROW else "[]"
        yield from _inner(member.type, f"{place}{own}")
