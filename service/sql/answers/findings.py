"""All faults of a script at once, the script as it would be accepted, and its migration."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from service.sql.grammar.parser import parse_each
from service.sql.grammar.syntax import (
    CreateTable,
    CreateTableAs,
    CreateView,
    Declaration,
    Explain,
    Insert,
    JobStatement,
    Select,
    Statement,
    StatementSet,
)
from service.sql.planner.insert_planner import JobPlanner
from service.sql.planner.planner import (
    behind_a_job,
    behind_a_query,
    drops,
    fills_a_table,
    plan_script,
)
from service.sql.planner.session import ScriptSession
from service.sql.stored import CatalogEntry, own_names, with_catalog
from service.sql.text.dialect import SqlToken, SqlTokenKind, Use, pieces
from service.sql.text.script import Edit, Script, SqlError, masked, not_too_deep

MOST_ROUNDS, LEAST_ROUNDS = 20, 4
TEXT_OF_ALL_ROUNDS = 256 * 1024
"""Characters after which no further round begins, because each round plans the whole script."""
MOST_FAULTS = 100
"""Faults of a round; further ones follow in the next one, or in the next answer."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault of a script at a place of its text.

    Attributes:
        replacement: the WITH clause of the table, or the line of the script, as it would be
            accepted; None where no change is known.
        sure: True if `sluice migrate` makes the change.
        outside: True if no change of words avoids the fault.
    """

    line: int
    column: int
    message: str
    hint: str
    excerpt: str
    replacement: str | None
    sure: bool
    outside: bool


@dataclass(frozen=True, slots=True)
class AppliedEdit:
    """An edit that was made, and the fault that it answers.

    `at` and `start` are places of the first text: of the fault, and of what was replaced.
    """

    fault: SqlError
    edit: Edit
    at: int
    start: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Revision:
    """A script after all edits: what was changed, and the faults that are left.

    Attributes:
        left: faults without an edit that could be made, each with its place in the first text.
        warnings: of the script, if it is accepted now.
        moves: start, end and new length of each edit, in the order in which they were made.
    """

    text: str
    changes: tuple[AppliedEdit, ...]
    left: tuple[tuple[SqlError, int], ...]
    warnings: tuple[str, ...] = ()
    moves: tuple[tuple[int, int, int], ...] = ()

    def now_at(self, at: int) -> int:
        """Where a place of the first text is in `text`."""
        for start, end, length in self.moves:
            if at >= end:
                at += length - (end - start)
            elif at > start:
                at = start
        return at


def findings(text: str, catalog: Iterable[CatalogEntry] = ()) -> tuple[Finding, ...]:
    """All faults of a script by their places; none if it is accepted."""
    revision = revised(text, catalog, guesses=True)
    clauses = _with_clauses(revision.text)
    script = Script(text)
    tables = _tables(script)
    every: list[tuple[SqlError, int, Edit | None, str | None]] = [
        (each.fault, each.at, each.edit, _clause_at(tables, each.start, clauses) or each.after)
        for each in revision.changes
    ]
    every += (
        (fault, at, fault.edit, _clause_at(tables, at, clauses)) for fault, at in revision.left
    )
    documents: dict[tuple[int, str], Finding] = {}
    for fault, at, edit, after in sorted(every, key=lambda each: each[1]):
        replacement = (after or None) if edit is not None else None
        line, column = script.line_and_column(at)
        documents.setdefault(
            (at, fault.bare_message),
            Finding(
                line,
                column,
                fault.bare_message,
                fault.hint,
                script.excerpt(at),
                replacement,
                edit is not None and edit.sure,
                fault.outside,
            ),
        )
    return tuple(documents.values())


def revised(text: str, catalog: Iterable[CatalogEntry] = (), *, guesses: bool = False) -> Revision:
    """The script with the edits of its faults made, again and again until none is left.

    Without `guesses` only edits are made that are sure.
    """
    entries, changes = tuple(catalog), list[AppliedEdit]()
    moves: list[tuple[int, int, int]] = []
    shown = masked(text)
    for _ in range(max(LEAST_ROUNDS, min(MOST_ROUNDS, TEXT_OF_ALL_ROUNDS // (len(text) + 1)))):
        faults = _faults(text, entries)[:MOST_FAULTS]
        edits = _apart(f for f in faults if f.edit is not None and (guesses or f.edit.sure))
        if not edits:
            break
        places = [
            (_first_place(fault.at, moves), _first_place(edit.start, moves))
            for fault, edit in edits
        ]
        for _, edit in reversed(edits):
            text = text[: edit.start] + edit.text + text[edit.end :]
            moves.append((edit.start, edit.end, len(edit.text)))
        shown_after, moved = masked(text), 0  # what is a credential is known by what is around it
        for (fault, edit), (at, first) in zip(edits, places, strict=True):
            start = edit.start + moved
            after = shown_after[start : start + len(edit.text)]
            changes.append(AppliedEdit(fault, edit, at, first, shown[edit.start : edit.end], after))
            moved += len(edit.text) - (edit.end - edit.start)
        shown = shown_after
    left = tuple((fault, _first_place(fault.at, moves)) for fault in faults)
    warnings = () if left else plan_script(text, catalog=entries).warnings
    changes.sort(key=lambda change: change.at)
    return Revision(text, tuple(changes), left, warnings, tuple(moves))


def _first_place(at: int, moves: Sequence[tuple[int, int, int]]) -> int:
    """The place in the first text of `at`, a place behind all moves."""
    for start, end, length in reversed(moves):
        if at >= start + length:
            at += end - start - length
        elif at > start:
            at = start
    return at


def _apart(faults: Iterable[SqlError]) -> list[tuple[SqlError, Edit]]:
    """Edits by their places that do not overlap; the others follow in a later round."""
    every = [(fault, fault.edit) for fault in faults if fault.edit is not None]
    chosen: list[tuple[SqlError, Edit]] = []
    for fault, edit in sorted(every, key=lambda pair: (pair[1].start, pair[1].end)):
        if not chosen or edit.start > chosen[-1][1].end:
            chosen.append((fault, edit))
    return chosen


def _faults(text: str, entries: tuple[CatalogEntry, ...]) -> list[SqlError]:
    """Every fault of a script that does not only follow from another one."""
    try:
        script = Script(text)
        statements, unread = parse_each(script)
    except SqlError as fault:
        return [fault]
    faults = [fault for fault, _ in unread]
    own = own_names(statements) | {name for _, tokens in unread for name in _created(tokens)}
    whole = with_catalog(text, entries, own)
    session = ScriptSession(whole.script, keep_secrets=False, stored=whole.used)
    session.broken = {name for _, tokens in unread for name in _created(tokens)}
    faults += _of_statements(session, statements)
    every = [each for fault in faults for each in (fault, *fault.more)]
    own_faults = [fault for fault in every if not fault.follows]
    if not own_faults:
        try:
            plan_script(text, catalog=entries)
        except SqlError as fault:
            own_faults.append(fault)
    return own_faults


def _created(tokens: Sequence[SqlToken]) -> Iterator[str]:
    words = [token.text.upper() for token in tokens]
    if not words or words[0] != "CREATE":
        return
    at = next((i for i, word in enumerate(words) if word in ("TABLE", "VIEW")), None)
    if at is None:
        return
    at += 4 if words[at + 1 : at + 4] == ["IF", "NOT", "EXISTS"] else 1
    names = (SqlTokenKind.WORD, SqlTokenKind.QUOTED_NAME)
    while at + 2 < len(tokens) and tokens[at + 1].text == ".":
        at += 2
    if at < len(tokens) and tokens[at].kind in names:
        yield tokens[at].text


def _of_statements(session: ScriptSession, statements: Sequence[Statement]) -> list[SqlError]:
    faults: list[SqlError] = []
    jobs: list[JobStatement] = []
    fills, is_behind = fills_a_table(statements), False
    for statement in statements:
        if fills and isinstance(statement, Select):
            continue
        if isinstance(statement, JobStatement):
            jobs.append(statement)
            is_behind = fills
        elif isinstance(statement, Explain):
            jobs.append(statement.statement)
        elif is_behind and drops(statement):
            faults.append(behind_a_job(session.script, statement))
        elif isinstance(statement, Declaration):
            try:
                with not_too_deep():
                    session.apply(statement)
            except SqlError as fault:
                faults.append(fault)
                _replace_broken(session, statement)
    for job in jobs:
        for insert in job.inserts if isinstance(job, StatementSet) else (job,):
            _check_job(session, insert, faults)
    if not fills:
        queries = [each for each in statements if isinstance(each, Select)]
        _check_queries(session, queries, faults)
    return faults


def _check_job(session: ScriptSession, job: JobStatement, faults: list[SqlError]) -> None:
    try:
        with not_too_deep():
            JobPlanner(session).plan(job)
    except SqlError as fault:
        if isinstance(job, Insert) and fault.at == session.stood_in.get(job.table.text):
            fault.follows = True  # of what stands in for the table that is written
        faults.append(fault)
        _check_target(session, job, faults)


def _check_queries(
    session: ScriptSession, queries: Sequence[Select], faults: list[SqlError]
) -> None:
    """Of several queries none can be made a job alone."""
    if len(queries) > 1:
        starts = [each.start for each in pieces(session.script.text) if each.use is Use.PREVIEWS]
        for fault in faults:
            if fault.edit is not None and fault.edit.start in starts:
                fault.edit = None
        faults.append(behind_a_query(session.script, queries[1]))


def _check_target(session: ScriptSession, job: JobStatement, faults: list[SqlError]) -> None:
    """A query with a fault hides one of the table that it fills."""
    if isinstance(job, CreateTableAs):
        session.broken.add(job.table.name.text)
    if isinstance(job, Insert):
        try:
            session.find(job.table)
        except SqlError as fault:
            if all(fault.at != each.at for each in faults):
                faults.append(fault)


def _replace_broken(session: ScriptSession, statement: Statement) -> None:
    if isinstance(statement, CreateTable):
        try:
            session.stand_in(statement)
        except SqlError:
            session.broken.add(statement.name.text)
    elif isinstance(statement, CreateView):
        session.broken.add(statement.name.text)


def _tables(script: Script) -> list[CreateTable]:
    """The tables that a script declares; none if it cannot be read."""
    try:
        statements, _ = parse_each(script)
    except SqlError:
        return []
    return [table for table in map(_table_of, statements) if table is not None]


def _with_clauses(text: str) -> dict[str, str]:
    """Table → its WITH clause, credentials masked."""
    script = Script(text)
    return {
        table.name.text: f"WITH {script.shown(table.options_at, table.options_end)}"
        for table in _tables(script)
        if table.options_at
    }


def _table_of(statement: Statement) -> CreateTable | None:
    if isinstance(statement, CreateTableAs):
        return statement.table
    return statement if isinstance(statement, CreateTable) else None


def _clause_at(tables: Sequence[CreateTable], at: int, clauses: dict[str, str]) -> str | None:
    for table in tables:
        start = table.options_at or table.options_end  # a table without WITH gets it at its end
        if start <= at <= table.options_end and table.name.text in clauses:
            return clauses[table.name.text]
    return None


MARK = "-- sluice: "
_OWN_LINES = re.compile(rf"^{MARK}.*\n?", re.MULTILINE)
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Migration:
    """What `sluice migrate` answers.

    Attributes:
        sql: the script with all changes that are sure, and a comment for each of them.
        changes: what was changed, a full sentence each.
        left: what the service cannot change, by its place in `sql`; none if it is accepted.
        warnings: of the script as it is now, if it is accepted.
    """

    sql: str
    changes: tuple[str, ...]
    left: tuple[Finding, ...]
    warnings: tuple[str, ...]

    @property
    def is_accepted(self) -> bool:
        return not self.left


def migrate(text: str, catalog: Iterable[CatalogEntry] = ()) -> Migration:
    """Change a script where that is sure; comments of an earlier migration are replaced."""
    entries = tuple(catalog)
    revision = revised(_OWN_LINES.sub("", text), entries)
    comments: dict[int, list[str]] = {}
    starts = _starts(revision.text)
    for change in revision.changes:
        at = revision.now_at(change.at)
        comments.setdefault(_statement_at(starts, at), []).append(_sentence(change))
    for fault, _ in revision.left:
        kept = f"NOT CHANGED: {fault.bare_message}. {fault.hint}"
        comments.setdefault(_statement_at(starts, fault.at), []).append(kept)
    comments.setdefault(0, [])[:0] = list(revision.warnings)
    sql = _commented(revision.text, comments)
    left = findings(sql, entries) if revision.left else ()
    changes = tuple(_sentence(change) for change in revision.changes)
    return Migration(sql, changes, left, revision.warnings)


def _sentence(change: AppliedEdit) -> str:
    before, after = _short(change.before), _short(change.after)
    what = f"{before} is now {after}" if before and after else f"added {after}"
    what = what if after else f"removed {before}"
    note = f" {change.edit.note}" if change.edit.note else ""
    return f"{what}: {change.fault.bare_message}.{note}"


def _short(text: str) -> str:
    plain = " ".join(text.split())
    plain = plain.strip(", ") or plain
    return plain if len(plain) <= _SHOWN else plain[:_SHOWN] + "…"


def _starts(text: str) -> list[int]:
    try:
        return [piece.start for piece in pieces(text)]
    except SqlError:
        return []


def _statement_at(starts: list[int], at: int) -> int:
    return max((start for start in starts if start <= at), default=0)


def _commented(text: str, comments: dict[int, list[str]]) -> str:
    for at in sorted(comments, reverse=True):
        lines = "".join(f"{MARK}{_line(each)}\n" for each in dict.fromkeys(comments[at]))
        if not lines:
            continue
        newline = "" if at == 0 or text[at - 1] == "\n" else "\n"
        text = f"{text[:at]}{newline}{lines}{text[at:]}"
    return text


def _line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
