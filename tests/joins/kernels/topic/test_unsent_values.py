"""Values that a database did not send are those of the row's last version, in any batches."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.topic.kept_values import ValueFile
from joins.kernels.debezium.options import UnsentValues
from joins.kernels.topic.pieces import Action, ChangePiece, pieces_of
from joins.kernels.topic.unsent import filled_fields
from joins.plan.plan import Field
from tests.joins.kernels.debezium.test_golden import (
    batch_of,
    decoder_of,
    options_of,
    plain,
    records,
    tables,
    truth,
)
from tests.support.expressions import sql_type
from tests.support.laws import examples

FIELDS = [
    Field("id", sql_type("INT")),
    Field("n", sql_type("INT")),
    Field("text", sql_type("STRING")),
    Field("list", sql_type("ARRAY<INT>")),
]
UNSENT = object()
TEXTS = st.one_of(st.just(UNSENT), st.none(), st.text(max_size=3))
LISTS = st.one_of(st.just(UNSENT), st.none(), st.lists(st.integers(0, 9), max_size=2))
ROWS = st.tuples(st.just(Action.UPSERT), st.integers(0, 2), TEXTS, LISTS)
GONE = st.tuples(st.just(Action.DELETE), st.integers(0, 2), st.none(), st.none())
BATCHES = st.lists(st.lists(st.one_of(ROWS, ROWS, GONE), max_size=7), max_size=7)


def piece_of(changes, first):
    count = len(changes)
    nothing = np.zeros(count, np.int64)
    actions, keys, texts, lists = zip(*changes, strict=True)
    sent = [[None if each is UNSENT else each for each in column] for column in (texts, lists)]
    key = pa.RecordBatch.from_pydict({"id": pa.array(keys, pa.int32())})
    after = pa.RecordBatch.from_pydict(
        {
            "id": pa.array(keys, pa.int32()),
            "n": pa.array(range(count), pa.int32()),
            "text": pa.array(sent[0], pa.string()),
            "list": pa.array(sent[1], pa.list_(pa.int32())),
        }
    )
    unsent = np.array([[False, False, one is UNSENT, two is UNSENT] for _, _, one, two in changes])
    return ChangePiece(
        0,
        np.arange(first, first + count),
        *(nothing,) * 5,
        np.zeros(count, np.int8),
        np.array(actions, np.int8),
        key,
        after,
        unsent=unsent if unsent.any() else None,
    )


def expected_of(changes, known):
    """The first change without an earlier row, or else what all of them are."""
    rows, known = [], dict(known)
    for place, (action, key, text, items) in enumerate(changes):
        if action is Action.DELETE:
            known.pop(key, None)
            rows.append((None, None))
            continue
        if UNSENT in (text, items) and key not in known:
            return place, known
        old = known.get(key)
        known[key] = (old[0] if text is UNSENT else text, old[1] if items is UNSENT else items)
        rows.append(known[key])
    return rows, known


@settings(max_examples=examples(150))
@given(batches=BATCHES, dies=st.data())
def test_a_value_that_was_not_sent_is_that_of_the_row_before(tmp_path_factory, batches, dies):
    path = tmp_path_factory.mktemp("values") / "source.values"
    fields = filled_fields(FIELDS, ["id"])
    assert [field.name for field in fields] == ["text", "list"]
    file = ValueFile(path, fields, (0, 0), (0, 0), spare=0)
    kept, known, offset = ((0, 0), (0, 0)), {}, 0
    for changes in filter(None, batches):
        expected, after = expected_of(changes, known)
        filled = file.fill(piece_of(changes, offset))
        if isinstance(expected, int):
            assert min(filled.unknown) == expected
            continue
        assert not len(filled.unknown)
        rows = zip(
            *(filled.piece.after.column(n).to_pylist() for n in ("text", "list")), strict=True
        )
        shown = [
            row if change[0] is Action.UPSERT else (None, None)
            for row, change in zip(rows, changes, strict=True)
        ]
        assert shown == expected
        if dies.draw(st.booleans()):  # before it was saved: the batch comes again
            file = ValueFile(path, fields, *kept, spare=0)
            filled = file.fill(piece_of(changes, offset))
        file.keep(filled)
        kept, known, offset = file.save(), after, offset + len(changes)
        if dies.draw(st.booleans()):
            file = ValueFile(path, fields, *kept, spare=0)
    live = sum(1 for _ in path.parent.iterdir())
    assert live <= 4, "old files are removed"


def test_a_file_stays_small_though_its_process_starts_again_and_again(tmp_path):
    path, fields, spare = tmp_path / "values", filled_fields(FIELDS, ["id"]), 1_000
    kept, live, offset = ((0, 0), (0, 0)), 0, 0
    for start in range(40):
        file = ValueFile(path, fields, *kept, live=live, spare=spare)
        file.keep(file.fill(piece_of([(Action.UPSERT, 1, f"{start}", [])], offset)))
        kept, live, offset = file.save(), file.live, offset + 1
    (number, size), _ = kept
    assert number > 1
    assert size <= 2 * live + spare


def test_a_record_that_is_read_again_takes_no_later_value(tmp_path):
    file = ValueFile(tmp_path / "values", filled_fields(FIELDS, ["id"]), (0, 0), (0, 0))
    file.keep(file.fill(piece_of([(Action.UPSERT, 1, "a", [])], 5)))
    file.keep(file.fill(piece_of([(Action.UPSERT, 1, "b", [])], 9)))
    assert file.fill(piece_of([(Action.UPSERT, 1, UNSENT, [])], 7)).unknown.tolist() == [0]
    again = file.fill(piece_of([(Action.UPSERT, 1, UNSENT, [])], 10))
    assert again.piece.after.column("text").to_pylist() == ["b"]


@pytest.mark.parametrize("mode", ["default", "with_schema", "flattened", "avro"])
def test_large_values_of_postgres_are_kept(tmp_path, mode):
    described = tables("postgres")["toast"]
    config, lines = records(f"postgres/{mode}")
    own = [line for line in lines if line["topic"].endswith(".toast")]
    columns = [column for column in described["columns"] if column["sql"]]
    fields = [Field(column["name"], sql_type(column["sql"])) for column in columns]
    options = options_of(config, "toast")
    batch = batch_of(f"postgres/{mode}", own)
    rows = decoder_of(
        f"postgres/{mode}",
        fields,
        ["id"],
        replace(options, unsent_values=UnsentValues.LAST_VERSION),
    ).decode(batch)
    assert not rows.bad
    assert rows.unsent.any()
    places = {
        "partition": pa.array([0] * len(own), pa.int32()),
        "offset": pa.array(range(len(own)), pa.int64()),
        "timestamp": pa.array(range(len(own)), pa.timestamp("ms", "UTC")),
    }
    for name, values in places.items():
        batch = batch.append_column(name, values)
    (piece,) = pieces_of(batch, rows)
    file = ValueFile(tmp_path / "values", filled_fields(fields, ["id"]), (0, 0), (0, 0))
    filled = file.fill(piece)
    assert not len(filled.unknown)
    for row, line in enumerate(own):
        if line["after"] is None:
            continue
        for column, values in zip(columns, filled.piece.after.columns, strict=True):
            text = described["rows"][line["after"]].get(column["name"])
            expected = truth(text, sql_type(column["sql"]), column["type"])
            assert plain(values[row].as_py()) == expected, (row, column["name"])
