"""Sinks, hostile names and types: what a script may declare, the real sink takes and gives back."""

import itertools
import json

import fastavro
import pyarrow as pa
import pytest
from deltalake import DeltaTable

from joins.adapters.delta.features import Appends
from joins.adapters.delta.log import DeltaLog, create_table
from joins.adapters.delta.output import OutputLog, SparkAppend, spark_schema
from joins.kernels.formats.avro_schema import schema_to_write
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.plan.plan import DeltaSink, Field, KafkaSink, SinkWriter
from joins.plan.types import Member, SqlType, TypeName, array_type, arrow_type, map_type, row_type
from service.sql.planner.planner import plan
from service.sql.text.script import SqlError
from tests.support.formats import bad, batch_of, read, written
from tests.support.lanes import some_of

NAMES = (
    *(
        "n",
        "N",
        "ä",
        "Ä",
        "名",
        "😀",
        "a.b",
        "a-b",
        "a`b",
        'a"b',
        "a'b",
        "a\\b",
        "a/b",
        "a%b",
        "a:b",
    ),
    *("a b", "a,b", "a;b", "a{b", "a}b", "a(b", "a)b", "a\nb", "a\tb", "a=b", "a\x7fb", "$a", "*"),
    *("_topic", "_TOPIC", "_partition", "_offset", "_batch", "_dimension_versions", "_metadata"),
    *("_change_type", "_Commit_Version", "_commit_timestamp", "_rescued_data", "select", "null"),
    *("1", "x" * 200, "__index_level_0__", "_op", "rowid", "İ", "ß", "SS"),
)
INT = SqlType(TypeName.INT)
TYPES = (
    *(SqlType(name) for name in (TypeName.BOOLEAN, TypeName.TINYINT, TypeName.SMALLINT)),
    *(INT, SqlType(TypeName.BIGINT), SqlType(TypeName.FLOAT), SqlType(TypeName.DOUBLE)),
    *(SqlType(TypeName.STRING), SqlType(TypeName.BYTES), SqlType(TypeName.DATE)),
    *(SqlType(TypeName.DECIMAL, 38, 38), SqlType(TypeName.DECIMAL, 1, 0)),
    *(SqlType(TypeName.TIME, 3), SqlType(TypeName.TIMESTAMP, 6), SqlType(TypeName.TIMESTAMP, 3)),
    *(SqlType(TypeName.TIMESTAMP_LTZ, 6), SqlType(TypeName.TIMESTAMP_LTZ, 3)),
    *(array_type(INT), map_type(INT), array_type(SqlType(TypeName.STRING))),
    *(row_type(Member("x", INT)), row_type(Member("x", row_type(Member("y", INT))))),
)
SINKS = {
    "kafka_avro-confluent": "'connector' = 'kafka', 'topic' = 'o', 'format' = 'avro-confluent', "
    "'properties.bootstrap.servers' = 'b:1', 'avro-confluent.url' = 'http://r:1'",
    "delta": "'connector' = 'delta', 'path' = 'o'",
    "delta_bare": "'connector' = 'delta', 'path' = 'o', 'row-metadata' = 'false'",
    **{
        f"kafka_{form}": "'connector' = 'kafka', 'topic' = 'o', "
        f"'properties.bootstrap.servers' = 'b:1', 'format' = '{form}'"
        for form in ("json", "csv", "raw", "avro", "debezium-json")
    },
}


def declared(kind):
    if kind.name is TypeName.ROW:
        inner = ", ".join(f"{quoted(part.name)} {declared(part.type)}" for part in kind.members)
        return f"ROW<{inner}>"
    if kind.name is TypeName.ARRAY:
        return f"ARRAY<{declared(kind.members[0].type)}>"
    if kind.name is TypeName.MAP:
        return f"MAP<STRING, {declared(kind.members[1].type)}>"
    if kind.name is TypeName.DECIMAL:
        return f"DECIMAL({kind.precision}, {kind.scale})"
    is_time = kind.name in (TypeName.TIME, TypeName.TIMESTAMP, TypeName.TIMESTAMP_LTZ)
    return f"{kind.name}({kind.precision})" if is_time else str(kind.name)


def quoted(name):
    return "`" + name.replace("`", "``") + "`"


def accepted(sink, columns):
    """The sink of a script with these columns; None if it is refused."""
    ddl = ", ".join(f"{quoted(column.name)} {declared(column.type)}" for column in columns)
    try:
        made = plan(
            f"CREATE TABLE s (k INT) WITH ('connector' = 'datagen'); CREATE TABLE o (zz INT, {ddl})"
            f" WITH ({SINKS[sink]}); INSERT INTO o (zz) SELECT k FROM s"
            if "raw" not in sink
            else f"CREATE TABLE s (k INT) WITH ('connector' = 'datagen'); CREATE TABLE o ({ddl}) "
            f"WITH ({SINKS[sink]}); INSERT INTO o SELECT CAST(NULL AS {declared(columns[0].type)}) "
            "FROM s"
        )
    except SqlError:
        return None
    return made.inserts[0].sink


def tables():
    """Columns by name, by type, and two whose names are alike, also within a ROW."""
    for name in NAMES:
        yield (Field(name, INT),)
        yield (Field("r", array_type(row_type(Member(name, INT)))),)
    for kind in TYPES:
        yield (Field("c", kind),)
    for one, other in itertools.combinations(
        ("n", "N", "ä", "Ä", "İ", "i", "ß", "SS", "K", "\u212a", "s", "\u017f"), 2
    ):
        if one != other:
            yield (Field(one, INT), Field(other, INT))
            yield (Field("r", row_type(Member(one, INT), Member(other, INT))),)


def is_written(path, spark, schema, writer):
    """Two batches of NULLs by one of the writers, read back by delta-rs and by Spark."""
    create_table(path, schema)
    rows = pa.RecordBatch.from_arrays([pa.nulls(2, f.type) for f in schema], schema=schema)
    if writer is SinkWriter.COLUMNAR:
        log = DeltaLog(path, "app")
        log.commit_epoch(1)
        with ParquetStage(path, schema, FileOrigin(1, 0, 0, 0)) as stage:
            stage.write(rows)
            log.commit(0, 1, [stage.finish()], {})
    else:
        output = OutputLog(path, "app", Appends(schema, writer), spark)
        output.commit_epoch(1)
        frame = spark.createDataFrame([(None,) * len(schema)], schema=spark_schema(schema))
        output.append(0, 1, SparkAppend(frame, 1))
    found = DeltaTable(str(path)).to_pyarrow_table()
    assert found.schema.names == schema.names
    if spark is None:
        return
    frame = spark.read.format("delta").load(str(path))
    assert frame.columns == schema.names
    assert frame.count() == found.num_rows
    assert len(frame.collect()) == found.num_rows


# Which names are taken is the sink's affair, whether they can be written is the writer's.
WRITTEN = {
    f"{sink}-{writer}": (sink, writer)
    for sink in ("delta", "delta_bare")
    for writer in (SinkWriter.COLUMNAR, SinkWriter.SPARK)
}


@pytest.mark.parametrize(("sink", "writer"), some_of(WRITTEN, "delta_bare-columnar", "delta-spark"))
def test_delta_takes_what_a_script_may_declare(tmp_path, spark, sink, writer):
    """Tables whose names are not alike are put together: a table is dear."""
    whole: dict[str, pa.Field] = {}
    pairs = []
    for columns in tables():
        if accepted(sink, columns) is None:
            continue
        fields = [pa.field(item.name, arrow_type(item.type)) for item in columns]
        if len(fields) > 1 or columns[0].type.name is TypeName.ROW:
            pairs.append(pa.schema(fields))
            continue
        (field,) = fields
        name = field.name if field.name.lower() not in whole else f"{field.name}{len(whole)}"
        whole[name.lower()] = field.with_name(name)
    assert len(whole) > 60
    is_written(tmp_path / "whole", spark, pa.schema(list(whole.values())), writer)
    for at, schema in enumerate(pairs if writer is SinkWriter.COLUMNAR else pairs[:3]):
        is_written(tmp_path / f"pair{at}", spark if at < 3 else None, schema, writer)


@pytest.mark.parametrize("sink", [n for n in SINKS if n.startswith("kafka") and "conf" not in n])
def test_what_a_topic_takes_is_read_back(sink):
    taken = 0
    for columns in tables():
        found = accepted(sink, columns)
        if found is None:
            continue
        assert isinstance(found, KafkaSink)
        taken += 1
        fields = columns if "raw" in sink else (Field("zz", INT), *columns)
        rows = batch_of(fields, [(None,) * len(fields)])
        texts = written(found.value, fields, rows)
        if "debezium" in sink:
            assert set(json.loads(texts[0].as_py())["after"]) == {item.name for item in fields}
            continue
        if "csv" in sink:
            continue  # no cell is NULL without a literal
        parsed = read(found.value, fields, texts)
        assert bad(parsed) == []
        assert parsed.batch.equals(rows)
    assert taken > (5 if "raw" in sink else 30)


@pytest.mark.parametrize("form", ["kafka_avro", "kafka_avro-confluent"])
def test_the_schema_of_a_sink_is_one_of_avro(form):
    """By another reader of schemas; what Avro does not have is refused with the script."""
    taken, refused = 0, []
    for columns in tables():
        found = accepted(form, columns)
        if found is None:
            refused += [item.name for item in columns]
            continue
        assert isinstance(found, KafkaSink)
        taken += 1
        schema = fastavro.parse_schema(
            json.loads(schema_to_write(found.value, (Field("zz", INT), *columns)))
        )
        assert [each["name"] for each in schema["fields"]] == ["zz", *(c.name for c in columns)]
    assert taken > 60
    assert {"a b", "名", "$a", "1", "a-b"} <= set(refused)


def test_a_delta_sink_is_told_apart_from_others():
    assert accepted("delta", (Field("n", INT), Field("N", INT))) is None
    assert accepted("kafka_json", (Field("n", INT), Field("N", INT))) is not None
    assert isinstance(accepted("delta", (Field("n", INT),)), DeltaSink)
