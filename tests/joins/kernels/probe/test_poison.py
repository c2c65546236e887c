"""Every kind of poison among good records: its own verdict, its own reason, nobody else's row."""

import itertools
import random
from dataclasses import replace

import pytest

from joins.kernels.probe.probe import BatchContext, join_batch, kernel_spec
from joins.plan.plan import Field, OutputColumn
from joins.plan.types import Column, SqlType, TypeName
from tests.support.poison import BIG, KINDS, PROBE_COLUMNS, REASONS, ROWS
from tests.support.probe import PLAN, clicks, probe_task

TYPES = [part.split(" ") for part in PROBE_COLUMNS.split(", ")]
FIELDS = tuple(Field(name, SqlType(TypeName(kind))) for name, kind in TYPES)
OUTPUT = tuple(OutputColumn(f.name, Column("c", f.name, f.type)) for f in FIELDS)
SPEC = kernel_spec(
    replace(
        PLAN,
        probe=replace(PLAN.probe, fields=FIELDS),
        output=(*OUTPUT, PLAN.output[-1]),
    )
)
NAMES = {1: "r5", 2: "r5"}  # the users of the index
NEIGHBOURS = [b'{"user_id":1,"url":"/1","score":0.5}', b'{"user_id":2,"active":true}']
EXPECTED = {
    NEIGHBOURS[0]: {"user_id": 1, "url": "/1", "score": 0.5, "active": None, "name": "r5"},
    NEIGHBOURS[1]: {"user_id": 2, "url": None, "score": None, "active": True, "name": "r5"},
}
SMALL = [kind for kind in KINDS if len(kind.value or b"") < BIG]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    return probe_task(tmp_path_factory.mktemp("poison")).attach({"users": 1})


def answered(indexes, values):
    """(offset → row without its metadata, offset → reason); every letter has its own bytes."""
    records = clicks(*values, first=0)
    joined = join_batch(SPEC, records, indexes, BatchContext(0, 7, (("users", 1),)))
    rows = {}
    for row in joined.rows.to_pylist():
        assert row["_offset"] not in rows
        rows[row["_offset"]] = {k: v for k, v in row.items() if not k.startswith("_")}
    letters = {}
    for letter in joined.dead_letters.to_pylist():
        assert letter["value"] == values[letter["offset"]]
        letters[letter["offset"]] = letter["reason"]
    assert len(rows) + len(letters) == len(values)
    return rows, letters


def expected_row(name):
    return {**ROWS[name], "name": NAMES.get(ROWS[name]["user_id"])}


def everywhere():
    """Each kind in each place; a large one takes seconds in each, and is between in every run."""
    for kind, (place, name) in itertools.product(KINDS, enumerate(("first", "between", "last"))):
        marks = [pytest.mark.matrix] if kind not in SMALL and name != "between" else []
        yield pytest.param(kind, place, id=f"{kind.name}-{name}", marks=marks)


@pytest.mark.parametrize(("kind", "place"), list(everywhere()))
def test_poison_has_its_verdict_and_its_neighbours_their_rows(indexes, kind, place):
    values = list(NEIGHBOURS)
    values.insert(place, kind.value)
    rows, letters = answered(indexes, values)
    for offset, value in enumerate(values):
        if offset != place:
            assert rows[offset] == EXPECTED[value]
    if kind.verdict == "bad":
        assert REASONS[kind.name] in letters[place]
    else:
        assert rows[place] == expected_row(kind.name)


@pytest.mark.parametrize("seed", range(3))
def test_all_kinds_in_one_batch_keep_verdict_reason_and_coordinates(indexes, seed):
    rng = random.Random(seed)
    named = [(kind.name, kind.value) for kind in SMALL * 3]
    named += [("", rng.choice(NEIGHBOURS)) for _ in range(20_000)]
    rng.shuffle(named)
    rows, letters = answered(indexes, [value for _, value in named])
    for offset, (name, value) in enumerate(named):
        if name in REASONS:
            assert REASONS[name] in letters[offset], name
        else:
            assert rows[offset] == (expected_row(name) if name else EXPECTED[value]), name


def test_there_are_kinds_enough_and_each_has_what_is_expected_of_it():
    bad = {kind.name for kind in KINDS if kind.verdict == "bad"}
    good = {kind.name for kind in KINDS if kind.verdict == "good"}
    assert (bad, good) == (set(REASONS), set(ROWS))
    assert len(bad) >= 40
