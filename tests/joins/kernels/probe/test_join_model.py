"""A whole micro-batch against nested loops over plain rows: nothing of the kernel is used by them.

Tables are filled by commits with updates and deletes, so an index has several segments; a batch is
pinned to any of the versions.
"""

# ruff: noqa: DTZ001 - TIMESTAMP has no zone

import base64
import json
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.index.index import DimensionIndex, advance, build
from joins.kernels.probe.probe import BatchContext, index_spec, join_batch, kernel_spec
from joins.plan.plan import (
    BlackholeSink,
    Dimension,
    DimensionJoin,
    Field,
    JoinPlan,
    JoinType,
    KafkaOptions,
    KafkaSource,
    KeyPair,
    MysqlCdcSource,
    OutputColumn,
    ProbeSource,
)
from joins.plan.types import Call, Column, Constant, SqlType, TypeName, arrow_type
from tests.support.laws import examples

BOOLEAN, INT, STRING = (SqlType(name) for name in (TypeName.BOOLEAN, TypeName.INT, TypeName.STRING))
CONTEXT = BatchContext(proctime_ms=0, batch_id=0, versions=())
KINDS: dict[SqlType, Sequence[Any]] = {
    BOOLEAN: (True, False),
    SqlType(TypeName.TINYINT): (0, -128, 127),
    SqlType(TypeName.BIGINT): (0, -1, 2**63 - 1),
    SqlType(TypeName.DOUBLE): (0.0, -0.0, 1.5),
    SqlType(TypeName.DECIMAL, 38, 2): (Decimal("0.00"), Decimal("-0.01"), Decimal(10) ** 35),
    STRING: ("", "ö", "日本語", "x" * 300),
    SqlType(TypeName.BYTES): (b"", b"\0", b"\0\0", b"\xff" * 9),
    SqlType(TypeName.DATE): (date(1969, 12, 31), date(2024, 2, 29)),
    SqlType(TypeName.TIMESTAMP, 6): (datetime(1969, 12, 31, 23, 59, 59, 1), datetime(2024, 2, 29)),
    SqlType(TypeName.TIMESTAMP_LTZ, 3): (datetime(2024, 1, 1, tzinfo=UTC),),
}
NUMBERS = (0, 1, 2)
SHOPS = ("", "ö")
COMPARE = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    ">=": operator.ge,
}


@dataclass(frozen=True)
class Pair:
    """`alias.column = own` in the terms of the model."""

    alias: str
    column: str
    own: str
    null_safe: bool


@dataclass(frozen=True)
class Role:
    alias: str
    table: str
    left: bool
    pairs: tuple[Pair, ...]
    condition: tuple[Any, ...] | None


@dataclass(frozen=True)
class World:
    """A statement with its data.

    Attributes:
        types: of all columns, the same in every relation.
        keys: table → its primary key.
        commits: table → rows with `_op`, commit by commit.
        versions: table → the pinned commit.
        strict: an output column that is NOT NULL.
        records: probe rows, or bytes that are none.
    """

    types: Mapping[str, SqlType]
    keys: Mapping[str, tuple[str, ...]]
    commits: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]]
    versions: Mapping[str, int]
    roles: tuple[Role, ...]
    where: tuple[Any, ...] | None
    strict: tuple[str, str] | None
    records: Sequence[Mapping[str, Any] | bytes]


# The model
# --------------------------------------------------------------------------------------------------


def table_at(world: World, name: str) -> list[Mapping[str, Any]]:
    """The rows of a table at its pinned version, by primary key."""
    rows: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for commit in world.commits[name][: world.versions[name] + 1]:
        for row in commit:
            key = tuple(row[part] for part in world.keys[name])
            if row["_op"] == "d":
                rows.pop(key, None)
            else:
                rows[key] = row
    return [rows[key] for key in sorted(rows)]


def is_equal(left: Any, right: Any, *, null_safe: bool) -> bool:
    if left is None or right is None:
        return null_safe and left is None and right is None
    return bool(left == right)


def value_of(row: Mapping[str, Any], alias: str, column: str) -> Any:
    relation = row[alias]
    return None if relation is None else relation[column]


def truth(node: tuple[Any, ...], row: Mapping[str, Any]) -> bool | None:
    """SQL's three values of a condition."""
    kind, *rest = node
    if kind == "column":
        return value_of(row, *rest[:2])
    if kind == "constant":
        return rest[0]
    values = [truth(part, row) for part in rest]
    if kind in ("AND", "OR"):
        ends = kind == "OR"
        if ends in values:
            return ends
        return None if None in values else not ends
    if kind == "NOT":
        return None if values[0] is None else not values[0]
    if kind == "IS NULL":
        return values[0] is None
    if "DISTINCT" in kind:
        return is_equal(*values, null_safe=True) == ("NOT" in kind)
    return None if None in values else COMPARE[kind](*values)


def matches(world: World, role: Role, row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found = []
    for candidate in table_at(world, role.table):
        longer = {**row, role.alias: candidate}
        keys = all(
            is_equal(
                value_of(row, pair.alias, pair.column),
                candidate[pair.own],
                null_safe=pair.null_safe,
            )
            for pair in role.pairs
        )
        if keys and (role.condition is None or truth(role.condition, longer) is True):
            found.append(longer)
    return found


def nested_loops(world: World) -> tuple[list[Any], list[int], int]:
    """Output rows, numbers of the dead records, and how many records match everywhere."""
    output, dead, matched = [], [], 0
    for at, record in enumerate(world.records):
        if isinstance(record, bytes):
            dead.append(at)
            continue
        rows: list[Mapping[str, Any]] = [{"s": {**record, "at": at}}]
        for role in world.roles:
            longer: list[Mapping[str, Any]] = []
            for row in rows:
                found = matches(world, role, row)
                longer += found or ([{**row, role.alias: None}] if role.left else [])
            rows = longer
        complete = any(all(row[role.alias] is not None for role in world.roles) for row in rows)
        kept = [row for row in rows if world.where is None or truth(world.where, row) is True]
        if world.strict is not None and any(value_of(row, *world.strict) is None for row in kept):
            dead.append(at)
            continue
        matched += complete
        output += [shown(world, row) for row in kept]
    return output, dead, matched


def shown(world: World, row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(value_of(row, alias, column) for alias, column in output_columns(world))


def output_columns(world: World) -> list[tuple[str, str]]:
    return [("s", "at"), *((role.alias, name) for role in world.roles for name in world.types)]


# The kernel
# --------------------------------------------------------------------------------------------------


def expression(world: World, node: tuple[Any, ...]) -> Any:
    kind, *rest = node
    if kind == "column":
        return Column(rest[0], rest[1], world.types[rest[1]])
    if kind == "constant":
        return Constant(None if rest[0] is None else str(rest[0]), INT)
    return Call(kind, tuple(expression(world, part) for part in rest), BOOLEAN)


def plan_of(world: World) -> JoinPlan:
    fields = [Field(name, kind) for name, kind in world.types.items()]
    source = MysqlCdcSource("localhost", 3306, "cdc", "x", "shop", "t")
    joins = [
        DimensionJoin(
            role.alias,
            role.table,
            JoinType.LEFT if role.left else JoinType.INNER,
            tuple(
                KeyPair(
                    Column(pair.alias, pair.column, world.types[pair.column]),
                    pair.own,
                    pair.null_safe,
                )
                for pair in role.pairs
            ),
            None if role.condition is None else expression(world, role.condition),
        )
        for role in world.roles
    ]
    output = [
        OutputColumn(
            f"{alias}_{name}",
            Column(alias, name, world.types.get(name, INT)),
            nullable=(alias, name) != world.strict,
        )
        for alias, name in output_columns(world)
    ]
    return JoinPlan(
        name="job",
        sql="",
        probe=ProbeSource(
            "s", "s", KafkaSource(KafkaOptions("broker:9092", "s")), (*fields, Field("at", INT))
        ),
        dimensions=tuple(
            Dimension(name, source, tuple(fields), key) for name, key in world.keys.items()
        ),
        joins=tuple(joins),
        where=None if world.where is None else expression(world, world.where),
        output=tuple(output),
        sink_table="o",
        sink=BlackholeSink(),
    )


def changelog(world: World, commits: Sequence[Sequence[Mapping[str, Any]]]) -> list[pa.RecordBatch]:
    types = {name: arrow_type(kind) for name, kind in world.types.items()}
    numbers = ("_epoch", "_file", "_pos", "_row", "_partition", "_offset", "_generation")
    schema = pa.schema([*types.items(), ("_op", pa.string()), *((n, pa.int64()) for n in numbers)])
    batches, at = [], 0
    for commit in commits:
        rows = []
        for row in commit:
            at += 1
            rows.append({**dict.fromkeys(numbers, 1), **row, "_pos": at, "_offset": at})
        batches.append(pa.RecordBatch.from_pylist(rows, schema=schema))
    return batches


def indexes_of(directory: Any, world: World, plan: JoinPlan) -> dict[str, DimensionIndex]:
    found = {}
    for join in plan.joins:
        spec, home = index_spec(plan, join, 1), directory / join.dimension
        first, *later = changelog(world, world.commits[join.dimension])
        build(home, 0, spec, [first])
        for version, batch in enumerate(later, start=1):
            advance(home, version - 1, version, spec, [batch])
        found[join.alias] = DimensionIndex.attach(home, world.versions[join.dimension], spec)
    return found


def as_json(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, Decimal | date) else value


def records_of(world: World) -> pa.RecordBatch:
    values = [
        record
        if isinstance(record, bytes)
        else json.dumps({"at": at, **{n: as_json(v) for n, v in record.items()}}).encode()
        for at, record in enumerate(world.records)
    ]
    return pa.RecordBatch.from_pydict(
        {
            "value": pa.array(values, pa.binary()),
            "partition": pa.array([0] * len(values), pa.int32()),
            "offset": pa.array(range(len(values)), pa.int64()),
        }
    )


def check(directory: Any, world: World) -> None:
    plan = plan_of(world)
    answer = join_batch(
        kernel_spec(plan), records_of(world), indexes_of(directory, world, plan), CONTEXT
    )
    rows, dead, matched = nested_loops(world)
    assert [tuple(row.values()) for row in answer.rows.to_pylist()] == rows
    assert answer.coordinates.column("offset").to_pylist() == [row[0] for row in rows]
    assert answer.dead_letters.column("offset").to_pylist() == dead
    assert (answer.matched, answer.unmatched) == (matched, len(world.records) - len(dead) - matched)


# Random statements and data
# --------------------------------------------------------------------------------------------------


def condition(random: Random, types: Mapping[str, SqlType], aliases: Sequence[str]) -> Any:
    """A condition over columns of `aliases`; comparisons are of columns of one name."""
    again = partial(condition, random, types, aliases)
    shape = random.random()
    if shape < 0.25:
        return (random.choice(["AND", "OR"]), again(), again())
    if shape < 0.35:
        return ("NOT", again())
    name = random.choice(list(types))
    column = ("column", random.choice(aliases), name)
    if shape < 0.45:
        return ("IS NULL", column)
    other = ("column", random.choice(aliases), name)
    if types[name] == INT and random.random() < 0.5:
        other = ("constant", random.choice((*NUMBERS, None)))
    return (random.choice([*COMPARE, "IS DISTINCT FROM", "IS NOT DISTINCT FROM"]), column, other)


def roles(random: Random, types: Mapping[str, SqlType], tables: Sequence[str]) -> tuple[Role, ...]:
    made: list[Role] = []
    for n in range(random.randint(1, 3)):
        before = ["s", *(role.alias for role in made)]
        pairs = []
        for _ in range(random.choice([1, 1, 2])):
            own = random.choice(list(types))
            like = [own, *(name for name in types if types[name] == types[own])]
            null_safe = random.random() < 0.5
            pairs.append(Pair(random.choice(before), random.choice(like), own, null_safe))
        alias = f"d{n}"
        some = random.random() < 0.3
        extra = condition(random, types, [*before, alias]) if some else None
        made.append(Role(alias, random.choice(tables), random.random() < 0.6, tuple(pairs), extra))
    return tuple(made)


def a_row(random: Random, types: Mapping[str, SqlType]) -> dict[str, Any]:
    row = {name: random.choice((None, *KINDS[types[name]])) for name in "ab"}
    return {
        "id": random.choice(NUMBERS),
        "shop": random.choice(SHOPS),
        "n": random.choice((None, *NUMBERS)),
        **row,
    }


def a_change(random: Random, types: Mapping[str, SqlType], key: Sequence[str]) -> dict[str, Any]:
    op, row = random.choice("rccuud"), a_row(random, types)
    return {**({name: row[name] for name in key} if op == "d" else row), "_op": op}


def a_record(random: Random, types: Mapping[str, SqlType]) -> Mapping[str, Any] | bytes:
    if random.random() < 0.05:
        return b"{"
    row = a_row(random, types)
    return {name: None if random.random() < 0.2 else value for name, value in row.items()}


def a_world(random: Random) -> World:
    a, b = random.choice(list(KINDS)), random.choice(list(KINDS))
    types = {"id": INT, "shop": STRING, "a": a, "b": b, "n": INT}
    keys = {"t": ("id",), "u": ("shop", "id")}
    commits = {
        name: [
            [a_change(random, types, key) for _ in range(random.randint(0, 6))]
            for _ in range(random.randint(1, 4))
        ]
        for name, key in keys.items()
    }
    made = roles(random, types, list(keys))
    aliases = ["s", *(role.alias for role in made)]
    strict = (random.choice(aliases[1:]), random.choice(list(types)))
    return World(
        types=types,
        keys=keys,
        commits=commits,
        versions={name: random.randrange(len(made)) for name, made in commits.items()},
        roles=made,
        where=condition(random, types, aliases) if random.random() < 0.3 else None,
        strict=strict if random.random() < 0.1 else None,
        records=[a_record(random, types) for _ in range(random.randint(0, 10))],
    )


RANDOMS = st.randoms(use_true_random=True)  # its values are spread as they are asked for


@settings(max_examples=examples(150))
@given(random=RANDOMS)
def test_a_batch_is_what_nested_loops_give(random, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("joins.kernels.index.index._MERGE_FACTOR", random.choice([0, 4]))
        check(tmp_path_factory.mktemp("join"), a_world(random))


@settings(max_examples=examples(40))
@given(random=RANDOMS)
def test_a_batch_is_the_same_when_all_hashes_are_equal(random, tmp_path_factory):
    same = lambda columns: np.zeros(len(columns[0]), dtype=np.uint64)  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        for module in (
            "index.hash_table",
            "changelog.changes",
            "index.index",
            "index.dimension_index",
        ):
            patch.setattr(f"joins.kernels.{module}.hash_rows", same)
        patch.setattr("joins.kernels.index.index._MERGE_FACTOR", 0)
        check(tmp_path_factory.mktemp("join"), a_world(random))


def test_the_random_worlds_have_what_the_model_is_for():
    """Else the two tests above would compare nothing with nothing."""
    seen = dict.fromkeys(("rows", "fan_out", "padded", "matched", "dead", "null_met_null"), 0)
    for seed in range(150):
        world = a_world(Random(seed))
        rows, dead, matched = nested_loops(world)
        seen["rows"] += bool(rows)
        seen["fan_out"] += len(rows) > len({row[0] for row in rows})
        seen["padded"] += any(row[-len(world.types) :].count(None) > 3 for row in rows)
        seen["matched"] += bool(matched)
        seen["dead"] += bool(dead)
        plain = replace(
            world,
            roles=tuple(
                replace(role, pairs=tuple(replace(p, null_safe=False) for p in role.pairs))
                for role in world.roles
            ),
        )
        seen["null_met_null"] += nested_loops(plain)[0] != rows
    assert min(seen.values()) >= 10, seen
