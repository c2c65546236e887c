"""The history of one key of a dimension as the answer of an inspection."""

import pyarrow as pa

from joins.dimension.changelog_scan import VISIBLE, DimensionStates, PageLimit
from joins.dimension.changes import KeyHistory, KeyHistoryPage, KeyVersion
from joins.kernels.changelog.changes import DELETED
from joins.plan.plan import Dimension
from service.jobs.inspect.table_answers import (
    PAGE_BYTES,
    Answer,
    Question,
    absence,
    described,
    fitting,
    row_items,
)
from service.jobs.inspect.table_keys import PageCursor, key_objects, next_cursor, read_keys

_NUMBERS = 3  # of a cursor: newest version, oldest version, the version that the page is below
_NOWHERE: Answer = {"position": None, "source_ts_ms": None}


def key_history(states: DimensionStates, question: Question) -> Answer:
    """What became of the key of `question`, or of its cursor, the newest version first."""
    dimension = states.dimension
    cursor = PageCursor.read(question.get("cursor"), dimension, _NUMBERS)
    if cursor is None:
        key, newest = read_keys([question["key"]], dimension), states.newest()
        below = newest + 1
    else:
        key, (newest, _, below) = cursor.key_row(dimension), cursor.versions
    limit = PageLimit(question["limit"], PAGE_BYTES)
    page = KeyHistory(states, key).page(below, limit)
    items = [_item(each, dimension) for each in page.versions]
    shown = fitting(items)
    is_whole = shown == len(items)
    going_on = page.next_below if is_whole else items[shown - 1]["version"]
    place = None if going_on is None else tuple(key.column(n)[0] for n in states.scan.key)
    numbers = (newest, page.oldest, going_on or 0)
    return {
        **described(dimension),
        "key": key_objects(key, dimension)[0],
        "version": newest,
        "oldest_version": page.oldest,
        "items": items[:shown],
        "beginning": _beginning(page, dimension) if is_whole else None,
        "next_cursor": next_cursor(place, dimension, numbers),
    }


def _item(version: KeyVersion, dimension: Dimension) -> Answer:
    before, after = (_shown(record, dimension) for record in (version.before, version.after))
    later = after if after["reason"] != "not-copied-again" else _NOWHERE
    change = "insert" if before["values"] is None else "update"
    return {
        "version": version.version,
        "committed_at_ms": version.committed_at_ms,
        "change": "delete" if after["values"] is None else change,
        "reason": after["reason"],
        "records": version.records,
        "before": before["values"],
        "after": after["values"],
        "position": later["position"],
        "source_ts_ms": later["source_ts_ms"],
    }


def _beginning(page: KeyHistoryPage, dimension: Dimension) -> Answer | None:
    if page.beginning is None:
        return None
    return {"version": page.oldest, **_shown(page.beginning, dimension)}


def _shown(record: pa.Table, dimension: Dimension) -> Answer:
    """The values of a row and where they are from, or why there is no row."""
    if record.num_rows == 0:
        return {"values": None, "reason": "no-record", **_NOWHERE}
    item = row_items(record, dimension)[0]
    place = {name: item[name] for name in _NOWHERE}
    if record.column(VISIBLE)[0].as_py():
        return {"values": item["values"], "reason": None, **place}
    is_deleted = record.column(DELETED)[0].as_py()
    return {"values": None, "reason": absence(is_deleted=is_deleted), **place}
