"""Statements of `sluice sql` carried out in order, and the rows of a preview as they come."""

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
from service.errors import SubmissionError, WaitTimeoutError
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
    """Prints blocks of rows as they come, as one table whose columns never narrow."""

    def __init__(self) -> None:
        self._widths: list[int] | None = None
        self._rows = 0

    def show(self, columns: Sequence[str], rows: Sequence[Row]) -> None:
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
        say("(no rows)" if not self._rows else f"({self._rows} row{'s' * (self._rows > 1)})")


def _cell(cell: str | None) -> str:
    return "NULL" if cell is None else one_line(cell, _CELL)


@dataclass
class Conversation:
    """Executes statements in order; each sees the declarations before it.

    Declarations are dropped at the end, except for shared tables and scripts that only declare,
    which go to the catalog.
    """

    client: "Sluice"
    tell: Callable[[Result], None]  # receives the result of each statement
    timeout_s: float
    # creates the printer of preview rows; without it `tell` receives all of them
    live: Callable[[], RowStream] | None = None
    # statements are typed: a text that only declares is not meant for the catalog
    in_parts: bool = False
    names: tuple[str, ...] = ()  # declared tables and views
    append: bool = False  # INSERTs may write to outputs of other jobs
    _declared: str = field(default="", repr=False)
    _columns: tuple[str, ...] | None = ()

    def carry_out(self, text: str) -> None:
        """Execute each statement of `text`; a syntax error prevents all of them.

        Raises:
            SqlError: the text cannot be parsed.
            SluiceError: a statement was refused; the earlier ones have been executed.
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
            raise SubmissionError("script has no statement", hint="Write one, such as SHOW JOBS.")
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
        from service.sql.grammar.syntax import CreateTable, CreateView

        created = (node for node in nodes if isinstance(node, CreateTable | CreateView))
        lasting = [node for node in created if not node.temporary]
        shared = any(isinstance(node, CreateTable) and node.shared for node in lasting)
        return len(lasting) == len(nodes) and (shared or not self.in_parts)

    def _keep(self, script: str) -> None:
        with working("checking the script"):
            creation = self.client.catalog.create(script)
        warn(creation.warnings)
        rows = [[f"{name} created in the catalog"] for name in creation.created]
        rows += [[f"{name} already exists"] for name in creation.kept]
        self.tell({"statement": "CREATE", "columns": ["result"], "rows": rows})
        self._look_again(self._declared)

    def _drop(self, node: "Drop") -> None:
        from service.client.transport import NotFoundError

        name, done = node.name.text, "dropped"
        try:
            self.client.catalog.drop(name)
        except NotFoundError:
            if not node.if_exists:
                raise
            done = "does not exist"
        self.tell({"statement": "DROP", "columns": ["result"], "rows": [[f"{name} {done}"]]})
        self._look_again(self._declared)

    def _declare(self, script: str, word: str) -> None:
        self._look_again(script)

    def _look_again(self, script: str) -> None:
        tables, views = self.client.statements(f"{script}\n;SHOW TABLES;SHOW VIEWS;")[-2:]
        self.names = tuple(str(row[0]) for row in (*tables.rows, *views.rows))
        self._columns = None if self.names else ()

    def columns(self) -> tuple[str, ...]:
        """The columns of all declared tables; empty while the control plane does not answer."""
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
        with working("checking the script"):
            job = self.client.submit(script, append=self.append)
        document = job.status()
        warn(warning.message for warning in document.warnings)
        answer = {"statement": word, "columns": ["job id"], "rows": [[job.id]]}
        self.tell({**answer, "job": plain(document)})

    def _preview(self, script: str, word: str) -> None:
        """Run the job of a SELECT, read its rows from the log, and remove it."""
        most = _preview_rows(script)
        with working("checking the script"):
            job = self.client.submit(script)
        try:
            warn(warning.message for warning in job.status().warnings)
            rows = self._rows(job, most)
        except WaitTimeoutError as exc:
            raise WaitTimeoutError(
                exc.message,
                hint="The job of this query is removed; give it more time with --timeout.",
            ) from exc
        finally:
            with working("removing the preview"):
                job.delete()
        if self.live is None:
            columns, own = rows.columns or [], rows.rows
            self.tell({"statement": word, "columns": columns, "rows": own})

    def _rows(self, job: "RemoteJob", most: int) -> "PreviewLog":
        """At most `most` printed rows; with `live` they appear as they arrive."""
        rows = PreviewLog(job, most)
        shown = None if self.live is None else self.live()
        with ExitStack() as stack:
            show_progress = stack.enter_context(job_progress())
            for document in looks(job, GOALS["finished"], self.timeout_s):
                new = rows.read()
                if new and shown is not None:
                    stack.close()  # bars and rows share the screen
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
    """Reads the rows in the log of a preview: lines such as `+I{"id": "1"}`."""

    def __init__(self, job: "RemoteJob", most: int) -> None:
        self._job = job
        self._most = most
        self._at = 0
        self._rest = ""
        # `op` and the columns of the rows; None before the first row
        self.columns: list[str] | None = None
        self.rows: list[list[str | None]] = []

    def read(self) -> list[list[str | None]]:
        """The rows since the last call."""
        before = len(self.rows)
        while len(self.rows) < self._most:
            block, after = self._job.inspect.log(self._at)
            if after == self._at:
                break
            self._at = after
            *lines, self._rest = (self._rest + block).split("\n")  # not splitlines: of values
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
    from service.sql.grammar.parser import parse  # slow to load, and few commands read scripts
    from service.sql.grammar.syntax import Select
    from service.sql.text.script import Script

    query = parse(Script(script))[-1]
    assert isinstance(query, Select), "a preview is a SELECT"
    return query.preview_rows


def _is_dropped_for_good(node: "Statement", nodes: Sequence["Statement"]) -> "TypeIs[Drop]":
    """True if a statement drops something that the conversation did not declare."""
    from service.sql.grammar.syntax import CreateTable, CreateView, Drop

    if not isinstance(node, Drop):
        return False
    created = (each for each in nodes if isinstance(each, CreateTable | CreateView))
    return all(each.name.text != node.name.text or each.at > node.at for each in created)


def _unread(job: "JobDetail") -> Iterator[str]:
    count = 0 if job.probe is None else job.probe.dead_letters
    if count:
        yield (
            f"{count} records could not be read; a job with a sink stores such records as dead "
            "letters with their reason."
        )


def show_result(result: Result) -> None:
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
