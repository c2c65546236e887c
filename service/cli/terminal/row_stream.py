"""Rows that come while they are shown: a table whose columns never become narrower.

Values come from streams and tables, so each passes `one_line`.
"""

from collections.abc import Sequence

from rich.cells import cell_len

from service.cli.output import one_line, say, show, table

_MOST_WIDE = 40
_CELL = 2_000
Row = Sequence[str | None]


class RowStream:
    """Shows blocks of rows as they come, one table over all of them."""

    def __init__(self) -> None:
        self._widths: list[int] | None = None
        self._rows = 0

    def show(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Show `rows` below those before them; the first ones with the names of the columns."""
        cells = [[_cell(cell) for cell in row] for row in rows]
        heads = [one_line(name) for name in columns]
        before = self._widths or [0] * len(heads)
        own = zip(before, heads, *cells, strict=True)
        made = table(*heads)
        made.show_header = self._widths is None
        self._widths = [
            min(_MOST_WIDE, max(width, *map(cell_len, column))) for width, *column in own
        ]
        for column, width in zip(made.columns, self._widths, strict=True):
            column.min_width, column.max_width = width, _MOST_WIDE
        for row in cells:
            made.add_row(*row)
        self._rows += len(rows)
        show(made)

    def end(self) -> None:
        """Say how many rows there were."""
        say("(no rows)" if not self._rows else f"({self._rows} row{'s' * (self._rows > 1)})")


def _cell(cell: str | None) -> str:
    return "NULL" if cell is None else one_line(cell, _CELL)
