"""A Delta table with nested columns as a source: what it is, as its changelog says."""

import json
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from joins.adapters.delta.source import DeltaFeedConfig, captured_columns, check_source_table
from joins.durable.codec import as_json, from_json
from joins.kernels.changelog.changes import DELETED, GENERATION, Progress, read_changes
from joins.kernels.changelog.envelope import decode
from joins.kernels.index.segment import IndexSpec
from joins.plan.errors import SourceError
from joins.plan.plan import Field
from joins.plan.types import Member, SqlType, TypeName, array_type, arrow_type, map_type, row_type
from tests.support.feeds import PARTITIONS, feed

BIGINT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
DECIMAL, DATE = SqlType(TypeName.DECIMAL, 6, 2), SqlType(TypeName.DATE)
ADDRESS = row_type(Member("city", STRING), Member("zip", BIGINT), Member("since", DATE))
FIELDS = (
    Field("id", BIGINT),
    Field("address", ADDRESS),
    Field("tags", array_type(STRING)),
    Field(
        "prices", map_type(row_type(Member("amount", DECIMAL), Member("raw", array_type(BIGINT))))
    ),
)
ROWS = [
    {
        "id": 1,
        "address": {"city": "Ulm", "zip": 89073, "since": None},
        "tags": ["a", None, 'é"\\\n'],
        "prices": [("EUR", {"amount": Decimal("1.50"), "raw": [1]}), ("", None)],
    },
    {"id": 2, "address": None, "tags": None, "prices": None},
    {"id": 3, "address": dict.fromkeys(("city", "zip", "since")), "tags": [], "prices": []},
]
IDS = {"id": 1, "address": 2, "city": 3, "zip": 4}
CDF = {"delta.enableChangeDataFeed": "true"}
PLAIN: dict[str, str] = {}


def table(rows, fields=FIELDS):
    return pa.Table.from_pylist(rows, schema(fields))


def schema(fields):
    return pa.schema([(field.name, arrow_type(field.type)) for field in fields])


def rows_of(source, fields=FIELDS):
    """What the changelog says that the table is."""
    decoded = decode(source.topic.batch(), captured_columns(fields), topic="topic").batch
    spec = IndexSpec(("id",), ("id",), fields, PARTITIONS)
    changes = read_changes([decoded], spec, Progress())
    complete = changes.progress.complete_generation(PARTITIONS)
    return [
        {name: row[name] for name in spec.schema.names}
        for row in changes.rows.sort_by("id").to_pylist()
        if not row[DELETED] and row[GENERATION] >= complete
    ]


def table_rows(path, fields=FIELDS):
    found = DeltaTable(path).to_pyarrow_table().select([field.name for field in fields])
    return found.cast(schema(fields)).sort_by("id").to_pylist()


@pytest.mark.parametrize("properties", [CDF, PLAIN], ids=["change_feed", "no_change_feed"])
def test_each_commit_of_nested_values_is_followed(tmp_path, properties):
    path = tmp_path / "customer"
    write_deltalake(path, table(ROWS), configuration=properties)
    source = feed(path, tmp_path, FIELDS)
    assert (
        from_json(DeltaFeedConfig, json.loads(json.dumps(as_json(source.config)))) == source.config
    )
    session = source.run()
    assert rows_of(source) == table_rows(path)
    assert rows_of(source)[0]["prices"][1] == ("", None)
    write_deltalake(path, table([ROWS[0] | {"id": 4}]), mode="append")
    DeltaTable(path).update(
        updates={
            "address": "named_struct('city', 'Bonn', 'zip', 1, 'since', cast('2026-11-22' as date))"
        },
        predicate="id = 2",
    )
    DeltaTable(path).delete("id = 3")
    before = len(source.topic.records)
    source.run(session)
    assert rows_of(source) == table_rows(path)
    assert [row["id"] for row in rows_of(source)] == [1, 2, 4]
    told = [json.loads(record.value) for record in source.topic.records[before:]]
    assert sorted(value["op"] for value in told) == ["c", "d", "u"]
    DeltaTable(path).optimize.compact()
    write_deltalake(path, table([ROWS[0], ROWS[1]]), mode="overwrite")
    source.run(session)
    assert rows_of(source) == table_rows(path)


def test_parts_are_found_by_name_and_those_that_a_file_lacks_are_null(tmp_path):
    path = tmp_path / "customer"
    old = (FIELDS[0], Field("address", row_type(*ADDRESS.members[:1])))
    write_deltalake(path, table([{"id": 1, "address": {"city": "Ulm"}}], old))
    whole = FIELDS[:2]
    write_deltalake(path, table(ROWS[1:], whole), mode="append", schema_mode="merge")
    declared = (
        FIELDS[0],
        Field("ADDRESS", row_type(Member("ZIP", BIGINT), Member("City", STRING))),
    )
    source = feed(path, tmp_path, declared)
    source.run()
    assert [row["ADDRESS"] for row in rows_of(source, declared)] == [
        {"ZIP": None, "City": "Ulm"},
        None,
        {"ZIP": None, "City": None},
    ]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_mapped_parts_are_found_under_their_names(tmp_path, mode):
    path = tmp_path / "mapped"
    fields = (FIELDS[0], Field("address", array_type(row_type(*ADDRESS.members[:2]))))
    write_deltalake(path, table([{"id": 1, "address": [{"city": "Ulm", "zip": 7}]}], fields))
    entry = path / "_delta_log" / f"{0:020d}.json"
    actions = [json.loads(line) for line in entry.read_text().splitlines()]
    for action in actions:
        if "metaData" in action:
            action["metaData"]["configuration"] = {"delta.columnMapping.mode": mode}
            told = json.loads(action["metaData"]["schemaString"])
            action["metaData"]["schemaString"] = json.dumps(mapped(told))
        if "protocol" in action:
            action["protocol"] = {"minReaderVersion": 2, "minWriterVersion": 5}
        if "add" in action:
            file = path / action["add"]["path"]
            kinds = pa.schema([in_file(item, mode) for item in schema(fields)])
            one, city, zip_ = (kinds[0].name, *(part.name for part in kinds[1].type.value_type))
            row = {one: 1, kinds[1].name: [{city: "Ulm", zip_: 7}]}
            pq.write_table(pa.Table.from_pylist([row], kinds), file)
            action["add"] |= {"size": file.stat().st_size, "stats": None}
    entry.write_text("\n".join(json.dumps(action) for action in actions))
    source = feed(path, tmp_path, fields)
    source.run()
    assert rows_of(source, fields) == [{"id": 1, "address": [{"city": "Ulm", "zip": 7}]}]


def mapped(value):
    """A schema whose fields have names and ids in files."""
    if isinstance(value, list):
        return [mapped(item) for item in value]
    if not isinstance(value, dict):
        return value
    told = {name: mapped(item) for name, item in value.items()}
    if value.get("name") in IDS:
        number = IDS[value["name"]]
        prefix = "delta.columnMapping."
        told["metadata"] = {f"{prefix}physicalName": f"col-{number}", f"{prefix}id": number}
    return told


def in_file(item, mode):
    """A field as it is in files; with ids its name there is any."""
    kind = item.type
    if pa.types.is_struct(kind):
        kind = pa.struct([in_file(part, mode) for part in kind])
    if pa.types.is_list(kind):
        kind = pa.list_(in_file(kind.value_field, mode))
    if item.name not in IDS:
        return pa.field(item.name, kind)
    number = IDS[item.name]
    name = f"col-{number}" if mode == "name" else f"any {number}"
    return pa.field(name, kind, metadata={"PARQUET:field_id": str(number)})


UNFIT = {
    "a_scalar_declared_as_a_row": (
        "id",
        row_type(Member("x", STRING)),
        'column "id" is long, declared ROW<`x` STRING>',
        "Declare id BIGINT.",
    ),
    "a_row_declared_as_text": (
        "address",
        STRING,
        'column "address" is struct<city: string, zip: long, since: date>, declared STRING',
        "Declare address ROW<`city` STRING, `zip` BIGINT, `since` DATE>.",
    ),
    "a_field_of_another_type": (
        "address",
        row_type(Member("zip", STRING)),
        'column "address.zip" is long, declared STRING',
        "Declare address ROW<`city` STRING, `zip` BIGINT, `since` DATE>.",
    ),
    "a_field_that_is_not_there": (
        "address",
        row_type(Member("street", STRING)),
        'column "address" has no field "street"',
        "Declare address ROW<`city` STRING, `zip` BIGINT, `since` DATE>.",
    ),
    "elements_of_another_type": (
        "tags",
        array_type(BIGINT),
        'column "tags[]" is string, declared BIGINT',
        "Declare tags ARRAY<STRING>.",
    ),
    "values_of_another_type": (
        "prices",
        map_type(row_type(Member("raw", array_type(STRING)))),
        'column "prices[].value.raw[]" is long, declared STRING',
        "Declare prices MAP<STRING, ROW<`amount` DECIMAL(6,2), `raw` ARRAY<BIGINT>>>.",
    ),
    "keys_that_are_no_texts": (
        "numbers",
        map_type(BIGINT),
        'column "numbers[].key" is long, declared STRING',
        "Leave these columns out of the declaration.",
    ),
}


@pytest.mark.parametrize(("name", "declared", "message", "hint"), UNFIT.values(), ids=UNFIT)
def test_parts_that_do_not_fit_are_named(tmp_path, name, declared, message, hint):
    numbers = pa.array([[(1, 2)]] * 3, pa.map_(pa.int64(), pa.int64()))
    write_deltalake(tmp_path / "t", table(ROWS).append_column("numbers", numbers))
    fields = (Field("tags", array_type(STRING)), Field(name, declared))
    with pytest.raises(SourceError) as raised:
        check_source_table(tmp_path / "t", fields, ("tags",))
    assert raised.value.message.endswith(message)
    assert raised.value.hint == hint
