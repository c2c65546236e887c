"""Statements of `sluice sql` carried out in order, and the rows of a preview as they come.

Values come from streams and tables, so each passes `one_line`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer
from rich.cells import cell_len

from service.cli.output import clean, one_line, plain, say, show, table, warn, working
from service.cli.wait import GOALS, job_progress, looks
from service.errors import SubmissionError
from watermark.errors import SluiceError

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from service.client import RemoteJob, Sluice
    from service.schemas.jobs import JobDetail
    from service.sql.grammar.syntax import Drop, Statement

_ROW = re.compile(r"([+-][A-Z])(\{.*\})")
_WHOLE = 10_000
_MOST_WIDE = 40
_CELL = 2_000
Row = Sequence[str | None]
Result = Mapping[str, Any]


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


@dataclass
class Conversation:
    """Statements that are carried out in order; each sees what those before it have declared.

    What is declared is forgotten at the end, but what the catalog is to keep: shared tables, and
    tables and views of a whole script that does nothing else.

    Attributes:
        tell: is given what each statement has brought.
        live: makes what shows rows of a preview as they come; without it `tell` gets all of them.
        in_parts: more comes: that a text only declares does not make it one for the catalog.
        names: of the tables and views that are declared.
        append: INSERTs may write to outputs of other jobs.
    """

    client: "Sluice"
    tell: Callable[[Result], None]
    timeout_s: float
    live: Callable[[], RowStream] | None = None
    in_parts: bool = False
    names: tuple[str, ...] = ()
    append: bool = False
    _declared: str = field(default="", repr=False)
    _columns: tuple[str, ...] | None = ()

    def carry_out(self, text: str) -> None:
        """Carry out each statement of `text`; a fault in the grammar of one keeps all from it.

        Raises:
            SqlError: the text cannot be read.
            SluiceError: a statement was refused; those before it are done.
        """
        from service.sql.grammar.parser import parse  # slow to load, and few commands read scripts
        from service.sql.text.dialect import Use, only, pieces
        from service.sql.text.script import Script

        whole = self._declared + text
        statements = pieces(whole)
        nodes = parse(Script(whole))
        earlier = [piece for piece in statements if piece.start < len(self._declared)]
        new = statements[len(earlier) :]
        if not new:
            raise SubmissionError("there is no statement", hint="Write one, such as SHOW JOBS.")
        if self._is_for_catalog(nodes[len(earlier) :]):
            self._keep(only(whole, new))
            return
        carry = {
            Use.DECLARES: self._declare,
            Use.ASKS: self._ask,
            Use.RUNS: self._submit,
            Use.PREVIEWS: self._preview,
        }
        try:
            for piece, node in zip(new, nodes[len(earlier) :], strict=True):
                if _is_dropped_for_good(node, nodes):
                    self._drop(node)
                    continue
                carry[piece.use](only(whole, [*earlier, piece]), piece.word)
                if piece.use is Use.DECLARES:
                    earlier.append(piece)
        finally:
            self._declared = "".join(f"{whole[p.start : p.end]};\n" for p in earlier)

    def _is_for_catalog(self, nodes: Sequence["Statement"]) -> bool:
        """Whether statements declare what is to last, and do nothing else."""
        from service.sql.grammar.syntax import CreateTable, CreateView

        created = (node for node in nodes if isinstance(node, CreateTable | CreateView))
        lasting = [node for node in created if not node.temporary]
        shared = any(isinstance(node, CreateTable) and node.shared for node in lasting)
        return len(lasting) == len(nodes) and (shared or not self.in_parts)

    def _keep(self, script: str) -> None:
        with working("checking what the script names"):
            creation = self.client.catalog.create(script)
        warn(creation.warnings)
        rows = [[f"{name} is kept for later scripts"] for name in creation.created]
        rows += [[f"{name} is there already"] for name in creation.kept]
        self.tell({"statement": "CREATE", "columns": ["result"], "rows": rows})
        self._look_again(self._declared)

    def _drop(self, node: "Drop") -> None:
        """Drop what is of the catalog."""
        from service.client.refusals import NotFoundError

        name, done = node.name.text, "is dropped"
        try:
            self.client.catalog.drop(name)
        except NotFoundError:
            if not node.if_exists:
                raise
            done = "is not there"
        self.tell({"statement": "DROP", "columns": ["result"], "rows": [[f"{name} {done}"]]})
        self._look_again(self._declared)

    def _declare(self, script: str, word: str) -> None:
        self._look_again(script)

    def _look_again(self, script: str) -> None:
        tables, views = self.client.statements(f"{script}\n;SHOW TABLES;SHOW VIEWS;")[-2:]
        self.names = tuple(str(row[0]) for row in (*tables.rows, *views.rows))
        self._columns = None if self.names else ()

    def columns(self) -> tuple[str, ...]:
        """The columns of what is declared; none while the control plane does not say."""
        if self._columns is None:
            questions = "".join(f"DESCRIBE `{name}`;" for name in self.names)
            try:
                answers = self.client.statements(f"{self._declared}\n;{questions}")
            except SluiceError:
                return ()
            own = answers[-len(self.names) :]
            self._columns = tuple(str(row[0]) for answer in own for row in answer.rows)
        return self._columns

    def _ask(self, script: str, word: str) -> None:
        self.tell(plain(self.client.statements(script)[-1]))

    def _submit(self, script: str, word: str) -> None:
        with working("checking what the script names"):
            job = self.client.submit(script, append=self.append)
        document = job.status()
        warn(warning.message for warning in document.warnings)
        answer = {"statement": word, "columns": ["job id"], "rows": [[job.id]]}
        self.tell({**answer, "job": plain(document)})

    def _preview(self, script: str, word: str) -> None:
        """Run the job of a bare SELECT, take its rows from its log, and remove it."""
        most = _preview_rows(script)
        with working("checking what the script names"):
            job = self.client.submit(script)
        try:
            warn(warning.message for warning in job.status().warnings)
            rows = self._rows(job, most)
        finally:
            with working("removing the preview"):
                job.delete()
        if self.live is None:
            columns, own = rows.columns or [], rows.rows
            self.tell({"statement": word, "columns": columns, "rows": own})

    def _rows(self, job: "RemoteJob", most: int) -> "PreviewLog":
        """What the job has printed, up to its end or to `most` rows; shown live as it comes."""
        rows = PreviewLog(job, most)
        shown = None if self.live is None else self.live()
        with ExitStack() as stack:
            show_progress = stack.enter_context(job_progress())
            for document in looks(job, GOALS["finished"], self.timeout_s):
                new = rows.read()
                if new and shown is not None:
                    stack.close()  # bars and rows are on one screen
                    shown.show(rows.columns or [], new)
                elif not rows.rows:
                    show_progress(document)
                if len(rows.rows) >= most:
                    break
        warn(_unread(document))
        if shown is not None:
            shown.end()
        return rows


class PreviewLog:
    """The rows in the log of a preview: lines such as `+I{"id": "1"}`.

    Attributes:
        columns: `op`, and those of the rows; None before the first one.
        rows: all that were read.
    """

    def __init__(self, job: "RemoteJob", most: int) -> None:
        self._job = job
        self._most = most
        self._at = 0
        self._rest = ""
        self.columns: list[str] | None = None
        self.rows: list[list[str | None]] = []

    def read(self) -> list[list[str | None]]:
        """The rows that have come since the last call."""
        before = len(self.rows)
        while len(self.rows) < self._most:
            block, after = self._job.log(self._at)
            if after == self._at:
                break
            self._at = after
            *lines, self._rest = (self._rest + block).split("\n")  # values may have other breaks
            for line in lines:
                self._add(line)
        del self.rows[self._most :]
        return self.rows[before:]

    def _add(self, line: str) -> None:
        row = _ROW.fullmatch(line)
        if row is None:
            return
        try:
            values = json.loads(row[2])
        except ValueError:
            return
        self.columns = self.columns or ["op", *values]
        self.rows.append([row[1], *values.values()])


def _preview_rows(script: str) -> int:
    """How many rows a script that ends in a SELECT may show."""
    from service.sql.grammar.parser import parse  # slow to load, and few commands read scripts
    from service.sql.grammar.syntax import Select
    from service.sql.text.script import Script

    query = parse(Script(script))[-1]
    assert isinstance(query, Select), "a preview is a SELECT"
    return query.preview_rows


def _is_dropped_for_good(node: "Statement", nodes: Sequence["Statement"]) -> "TypeIs[Drop]":
    """Whether a statement drops what no earlier one of the conversation has declared."""
    from service.sql.grammar.syntax import CreateTable, CreateView, Drop

    if not isinstance(node, Drop):
        return False
    created = (each for each in nodes if isinstance(each, CreateTable | CreateView))
    return all(each.name.text != node.name.text or each.at > node.at for each in created)


def _unread(job: "JobDetail") -> Iterator[str]:
    count = 0 if job.probe is None else job.probe.dead_letters
    if count:
        yield (
            f"{count} records have no row, they could not be read; a job with a sink keeps such "
            "records as dead letters, with the reason of each."
        )


def show_result(result: Result) -> None:
    """What a statement has brought: a table, or lines where there is one column of text."""
    columns, rows = result["columns"], result["rows"]
    if len(columns) == 1 and columns[0] in ("result", "job id"):
        for (text,) in rows:
            typer.echo(clean(text or ""))
    else:
        made = table(*(one_line(column) for column in columns))
        for row in rows:
            made.add_row(*("NULL" if cell is None else one_line(cell, _WHOLE) for cell in row))
        show(made)
    if not rows:
        say("(no rows)")
