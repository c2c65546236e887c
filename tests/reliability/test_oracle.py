"""The oracle is judged itself: by evidence that was changed as a bug would have changed it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.reliability.experiment import Lab
from tests.reliability.oracle import audit
from tests.reliability.oracle_changelog import Cut, read_cuts
from tests.reliability.oracle_check import EXPECTED, Score, edited
from tests.reliability.oracle_history import Changes, History
from tests.reliability.oracle_probe import NotOneError, parse
from tests.reliability.planted_evidence import EDITS, Recorded, recorded
from tests.reliability.planted_runner import PLANTS

pytestmark = pytest.mark.matrix

Row = tuple[str, int, int, int, int, int]

LEVEL = np.zeros(1, np.int64)
_NAMES = ("_op", "_file", "_pos", "_row", "_partition", "_generation")


@pytest.fixture(scope="module")
def clean_run(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    spark_jars: list[Path],
) -> Iterator[Recorded]:
    lab = Lab(tmp_path_factory.mktemp("oracle"), kafka, mariadb)
    with recorded(lab, rounds=2) as run:
        yield run


@pytest.mark.experiment
def test_a_run_as_it_is_is_right(clean_run):
    verdict = audit(clean_run.inputs, clean_run.world)

    assert verdict.ok, verdict.as_json()
    assert verdict.records == verdict.rows + verdict.dead
    assert verdict.dead > 0
    assert verdict.unproven == 0


@pytest.mark.experiment
@pytest.mark.parametrize("name", EDITS)
def test_what_a_planted_bug_leaves_is_caught(clean_run, name):
    score = Score()

    score.judge(name, edited(clean_run, name))

    assert name in score.caught, score


def test_every_planted_bug_has_an_edit_and_an_expectation():
    assert set(PLANTS) == set(EDITS) == set(EXPECTED)
    assert len(PLANTS) == 12


@pytest.mark.experiment
def test_an_audit_before_the_rest_takes_only_what_is_committed(clean_run):
    with clean_run.copy() as copy:
        newest = copy.batches()[-1]
        log = copy.inputs.output / "_delta_log"
        entries = sorted(log.glob("*.json"))
        while str(newest) not in json.dumps(_transactions(entries[-1])):
            entries.pop()
        for entry in [e for e in sorted(log.glob("*.json")) if e >= entries[-1]]:
            entry.unlink()
        loose = audit(copy.inputs, copy.world)

    assert loose.lost > 0
    assert loose.torn == 1


def _transactions(entry: Path) -> list[Any]:
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    return [
        a["txn"]["version"] for a in actions if "txn" in a and ":fence" not in a["txn"]["appId"]
    ]


# Parts
# --------------------------------------------------------------------------------------------------


def history(*changes: tuple[int, tuple[int, int, int], str | None]) -> History:
    found = Changes()
    for key, place, name in changes:
        found.add(key, place, None if name is None else {"name": name})
    return History(found, "id", ("name",))


HISTORY = history(
    (1, (1, 100, 0), "a"),
    (2, (1, 100, 1), "b"),
    (1, (1, 300, 0), "c"),
    (2, (2, 50, 0), None),
    (1, (2, 50, 1), "d"),
)
STATES = {
    "before_everything": (1, (0, 0, -1), None),
    "between_two_rows_of_a_transaction": (2, (1, 100, 0), None),
    "at_the_row_itself": (2, (1, 100, 1), "b"),
    "a_boundary_has_the_transactions_before_it": (1, (1, 300, -1), "a"),
    "a_place_in_no_transaction": (1, (1, 200, 7), "a"),
    "the_next_file": (1, (2, 0, 0), "c"),
    "a_deleted_row": (2, (2, 50, 0), None),
    "the_end": (1, (9, 0, 0), "d"),
    "a_key_that_never_was": (3, (9, 0, 0), None),
}


@pytest.mark.parametrize(("key", "place", "name"), STATES.values(), ids=STATES)
def test_history_knows_the_row_at_each_place(key, place, name):
    change = int(HISTORY.at(HISTORY.codes([key], LEVEL), LEVEL + HISTORY.before(place))[0])

    assert (None if change < 0 else HISTORY.columns["name"][change]) == name


def entry(root: Path, version: int, **actions: Any) -> None:
    """One commit by hand: `add` names rows of a file, `rewrite` the same, `remove` names files."""
    lines: list[Mapping[str, Any]] = []
    for kind, change in (("add", True), ("rewrite", False)):
        for file, rows in actions.get(kind, {}).items():
            columns: list[Any] = [pa.array(column) for column in zip(*rows, strict=True)]
            table = pa.table(columns, names=list(_NAMES)).append_column(
                "_epoch", pa.array([0] * len(rows))
            )
            pq.write_table(table, root / file)
            lines.append({"add": {"path": file, "size": 1, "dataChange": change}})
    lines += [{"remove": {"path": file}} for file in actions.get("remove", ())]
    (root / "_delta_log").mkdir(parents=True, exist_ok=True)
    path = root / "_delta_log" / f"{version:020d}.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def copy_of_two_partitions(root: Path) -> None:
    root.mkdir()
    entry(root, 0, add={"r": [("r", 1, 5, -1, 0, 1), ("r", 1, 5, -1, 1, 1)]})
    entry(root, 1, add={"w0": [("c", 1, 8, 0, 0, 1), ("w", 1, 9, -1, 0, 1)]})
    entry(root, 2, add={"w1": [("w", 1, 9, -1, 1, 1)]})
    entry(root, 3, add={"u": [("u", 1, 20, 0, 0, 1), ("d", 1, 30, 2, 0, 1)]})


def test_a_version_holds_what_its_newest_coordinates_say(tmp_path):
    copy_of_two_partitions(tmp_path / "t")

    cuts = read_cuts(tmp_path / "t", [1, 2, 3])

    assert not cuts[1].complete or cuts[1].high == cuts[2].high
    high = {0: (1, 9, -1), 1: (1, 9, -1)}
    assert cuts[2] == Cut(2, high, high, True, whole=high)
    assert cuts[3].high == {0: (1, 30, 2), 1: (1, 9, -1)}


def test_the_number_of_partitions_tells_an_unfinished_copy(tmp_path):
    copy_of_two_partitions(tmp_path / "t")

    cuts = read_cuts(tmp_path / "t", [1, 2], partitions=2)

    assert not cuts[1].complete
    assert cuts[1].low == {}
    assert cuts[2].complete


def test_a_compaction_changes_nothing(tmp_path):
    root = tmp_path / "t"
    copy_of_two_partitions(root)
    merged = [("w", 1, 9, -1, 0, 1), ("w", 1, 9, -1, 1, 1), ("d", 1, 30, 2, 0, 1)]
    entry(root, 4, rewrite={"m": merged}, remove=["r", "w0", "w1", "u"])
    entry(root, 5, add={"v": [("u", 1, 40, 0, 1, 1)]})
    before = read_cuts(root, [3, 4, 5])
    for file in ("r", "w0", "w1", "u"):
        (root / file).unlink()

    after = read_cuts(root, [3, 4, 5])

    assert before[3].high == before[4].high == after[4].high == {0: (1, 30, 2), 1: (1, 9, -1)}
    assert before[5].high == after[5].high == {0: (1, 30, 2), 1: (1, 40, 0)}
    assert after[3] == Cut(3, {}, after[4].high, complete=False, certain=False)


def test_while_a_newer_generation_is_copied_a_row_may_be_older_or_newer(tmp_path):
    root = tmp_path / "t"
    copy_of_two_partitions(root)
    entry(root, 4, add={"r2": [("r", 1, 50, -1, 0, 2)]})
    entry(root, 5, add={"w2": [("w", 1, 60, -1, p, 2) for p in (0, 1)]})

    cuts = read_cuts(root, [3, 4, 5])

    assert cuts[4] == Cut(4, cuts[3].low, cuts[5].high, False, whole=cuts[3].low)
    assert cuts[5].high == {0: (1, 60, -1), 1: (1, 60, -1)}


TYPES = {"user_id": "BIGINT", "url": "STRING"}
GOOD = {
    "plain": (b'{"user_id":1,"url":"a"}', (1, "a")),
    "missing": (b"{}", (None, None)),
    "twice_inside": (b'{"user_id":1,"x":{"user_id":2}}', (1, None)),
    "largest": (b'{"user_id":9223372036854775807}', (2**63 - 1, None)),
}
BAD = {
    "null": None,
    "empty": b"",
    "document_null": b"null",
    "two_documents": b"{}{}",
    "half": b'{"user_id":1',
    "too_large": b'{"user_id":9223372036854775808}',
    "fraction": b'{"user_id":1.0}',
    "boolean": b'{"user_id":true}',
    "text": b'{"user_id":"1"}',
    "twice": b'{"user_id":1,"user_id":2}',
    "twice_escaped": b'{"user_id":1,"\\u0075ser_id":2}',
    "not_utf_8": b'{"url":"\xff"}',
    "nan": b'{"user_id":NaN}',
}


@pytest.mark.parametrize(("value", "fields"), GOOD.values(), ids=GOOD)
def test_a_record_is_read(value, fields):
    assert parse(value, TYPES) == fields


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_what_is_no_record_is_not_read(value):
    with pytest.raises(NotOneError):
        parse(value, TYPES)
