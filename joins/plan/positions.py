"""Positions of sources as text, and whether a pinned position has reached one."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from joins.plan.errors import RequestError

_BINLOG = re.compile(r"([^\s/\\:]{1,200}\.\d{1,10}):(\d{1,19})", re.ASCII)
_MARIADB_GTID = re.compile(r"\d{1,10}-\d{1,10}-\d{1,20}", re.ASCII)
_MYSQL_GTID = re.compile(
    r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::[a-z_]\w{0,31})?)((?::\d+(?:-\d+)?)+)",
    re.ASCII | re.IGNORECASE,
)
_OFFSET = re.compile(r"(\d{1,10}):(\d{1,19})", re.ASCII)
_FORMS = (
    "now, a GTID or a set of GTIDs, file:pos of a binlog, partition:offset of a topic (the next "
    "offset), a version of a Delta table, or at:milliseconds"
)
_MOST_TEXT = 8_000


class TokenKind(StrEnum):
    """What a token names."""

    TIME = "time"
    BINLOG = "binlog"
    MARIADB_GTID = "mariadb-gtid"
    MYSQL_GTID = "mysql-gtid"
    OFFSETS = "offsets"
    VERSION = "version"


@dataclass(frozen=True, slots=True)
class PositionToken:
    """A position to wait for; `value` by kind: milliseconds, (file name, pos), or a mapping."""

    kind: TokenKind
    value: Any

    def is_in(self, time_ms: int, position: Mapping[str, Any]) -> bool:
        """True if a version whose T and P are these has the position, for certain."""
        if self.kind is TokenKind.TIME:
            return time_ms >= int(self.value)
        if self.kind is TokenKind.BINLOG:
            if "file" not in position:
                return False
            name, pos = self.value
            return (file_number(position["file"]), int(position["pos"])) >= (file_number(name), pos)
        if self.kind is TokenKind.VERSION:
            return bool(position.get("version", -1) >= self.value)
        if self.kind is TokenKind.OFFSETS:
            offsets = position.get("offsets", {})
            return all(offsets.get(str(p), -1) >= offset for p, offset in self.value.items())
        known = position.get("gtid", "")
        if self.kind is TokenKind.MARIADB_GTID:
            numbers = _mariadb_gtids(known)
            return all(numbers.get(domain, -1) >= number for domain, number in self.value.items())
        sets = _mysql_gtids(known)
        return all(
            any(low <= first and last <= high for low, high in sets.get(source, ()))
            for source, intervals in self.value.items()
            for first, last in intervals
        )

    @property
    def place(self) -> tuple[int, int] | None:
        """(file or version, position) that changes of the table are compared with; None if unknown.

        A change is part of the token's state if it begins before this place.
        """
        if self.kind is TokenKind.BINLOG:
            name, pos = self.value
            return file_number(name), pos
        return (self.value + 1, 0) if self.kind is TokenKind.VERSION else None


def token_of(text: str, now_ms: int) -> PositionToken:
    """Read a token; `now` is everything that was committed until `now_ms`. Raises RequestError.

    >>> token_of("binlog.000002:17", 0).place, token_of("0-1-7", 0).value
    ((2, 17), {0: 7})
    """
    text = text.strip()
    if text == "now":
        return PositionToken(TokenKind.TIME, now_ms)
    if match := re.fullmatch(r"at:(\d{1,15})", text, re.ASCII):
        return PositionToken(TokenKind.TIME, int(match[1]))
    if match := _BINLOG.fullmatch(text):
        return PositionToken(TokenKind.BINLOG, (match[1], int(match[2])))
    if re.fullmatch(r"\d{1,18}", text, re.ASCII):
        return PositionToken(TokenKind.VERSION, int(text))
    parts = [part.strip() for part in text.split(",")] if 0 < len(text) <= _MOST_TEXT else []
    if parts and all(_MARIADB_GTID.fullmatch(part) for part in parts):
        return PositionToken(TokenKind.MARIADB_GTID, _mariadb_gtids(text))
    if parts and all(_MYSQL_GTID.fullmatch(part) for part in parts):
        return PositionToken(TokenKind.MYSQL_GTID, _mysql_gtids(text))
    if parts and all(_OFFSET.fullmatch(part) for part in parts):
        pairs = (part.split(":") for part in parts)
        offsets = dict(sorted((int(p), int(offset)) for p, offset in pairs))
        return PositionToken(TokenKind.OFFSETS, offsets)  # the greatest one of a partition
    raise RequestError(f'"{text[:100]}" is no position', hint=f"Write {_FORMS}.")


def file_number(name: str) -> int:
    """The number in the name of a binlog file."""
    return int(name.rpartition(".")[2])


def _mariadb_gtids(text: str) -> dict[int, int]:
    """Domain → sequence number: numbers of a domain grow, whatever server wrote them."""
    numbers: dict[int, int] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        if _MARIADB_GTID.fullmatch(part):
            domain, _, number = (int(each) for each in part.split("-"))
            numbers[domain] = max(number, numbers.get(domain, -1))
    return numbers


def _mysql_gtids(text: str) -> dict[str, list[tuple[int, int]]]:
    """Source → intervals, adjacent ones merged."""
    numbers: dict[str, list[tuple[int, int]]] = {}
    for part in (each.strip() for each in text.split(",")):
        match = _MYSQL_GTID.fullmatch(part)
        if match is not None:
            own = numbers.setdefault(match[1].lower(), [])
            for interval in match[2].strip(":").split(":"):
                first, _, last = interval.partition("-")
                own.append((int(first), int(last or first)))
    return {source: merged_intervals(intervals) for source, intervals in numbers.items()}


def merged_intervals(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Inclusive intervals in order; those that overlap or are adjacent are one."""
    merged: list[tuple[int, int]] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return merged
