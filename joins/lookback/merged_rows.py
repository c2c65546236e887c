"""What a batch has changed in an output whose rows replace others by key.

A merge writes whole files anew, with the rows that it leaves alone. So what a commit has changed is
the difference between the files that it added and those that it removed.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from joins.kernels.changelog.row_kinds import DELETE, UPDATE_BEFORE, all_kinds
from joins.kernels.json.exact import CanonicalRows, row_texts
from joins.kernels.probe.probe import JoinedBatch

Changes = Mapping[str, str | None]
"""Key → its row as JSON text, None where the batch has deleted it."""


def last_changes(answers: Iterable[JoinedBatch], key: Sequence[str]) -> Changes:
    """The last change of each key, as a merge applies it."""
    last: dict[str, str | None] = {}
    for answer in answers:
        kinds = all_kinds(answer.kinds, answer.rows.num_rows).to_pylist()
        for (name, row), kind in zip(_keyed(answer.rows, key), kinds, strict=True):
            if kind != UPDATE_BEFORE:  # the row that replaces it has the same key
                last[name] = None if kind == DELETE else row
    return last


def changed_rows(
    changes: Changes,
    added: Iterable[pa.Table],
    removed: Iterable[pa.Table],
    key: Sequence[str],
) -> tuple[CanonicalRows, CanonicalRows]:
    """(rows that the commit should have brought, those that it has).

    Args:
        changes: that the batch should have made.
        added: the rows of the files that its commit added, in the output's types.
        removed: likewise of those that it removed.
        key: columns that tell rows apart.

    A row of another key that is gone should have stayed; one that came should not have. A row of a
    changed key that was there and still is, beside or in place of its newest one, should have gone.
    """
    now, before = _counted(added, key), _counted(removed, key)
    expected = Counter((name, row) for name, row in changes.items() if row is not None)
    new = now - before
    lost = {at: count for at, count in (before - now).items() if at[0] not in changes}
    same = {at: count for at, count in (now & before).items() if at[0] in changes}
    return _canonical(expected + Counter(lost)), _canonical(new + Counter(same))


def _keyed(rows: pa.RecordBatch, key: Sequence[str]) -> Iterable[tuple[str, str]]:
    names = row_texts(rows.select(list(key))).to_pylist()
    return zip(names, row_texts(rows).to_pylist(), strict=True)


def _counted(tables: Iterable[pa.Table], key: Sequence[str]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for table in tables:
        for batch in table.to_batches():
            counts.update(_keyed(batch, key))
    return counts


def _canonical(rows: Counter[tuple[str, str]]) -> CanonicalRows:
    return CanonicalRows.of_texts((None, None, row) for _, row in rows.elements())
