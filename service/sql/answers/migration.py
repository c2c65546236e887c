"""A script of Flink as it would be accepted, with a comment for each change."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from service.sql.answers.findings import AppliedEdit, Finding, findings, revised
from service.sql.stored import CatalogEntry
from service.sql.text.dialect import pieces
from service.sql.text.script import SqlError

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
