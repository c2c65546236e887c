"""Tables that Spark writes as sources: deletion vectors, mapped columns, types, change feed."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from joins.plan.plan import Field
from joins.plan.types import SqlType, TypeName
from tests.support.feeds import feed, table_rows

FEATURES = {
    "plain": {},
    "columns_mapped_by_id": {"delta.columnMapping.mode": "id"},
    "all_and_a_change_feed": {
        "delta.enableDeletionVectors": "true",
        "delta.enableChangeDataFeed": "true",
        "delta.columnMapping.mode": "name",
        "delta.checkpointPolicy": "v2",
        "delta.checkpointInterval": "2",
    },
}
FIELDS = (
    Field("id", SqlType(TypeName.BIGINT)),
    Field("title", SqlType(TypeName.STRING)),
    Field("day", SqlType(TypeName.DATE)),
)


@pytest.fixture
def user(spark: SparkSession) -> SparkSession:
    session = spark.newSession()
    session.conf.set("spark.sql.runSQLOnFiles", "true")
    return session


def described(properties: dict[str, str]) -> str:
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    return f" TBLPROPERTIES ({pairs})" if pairs else ""


@pytest.mark.parametrize(
    "properties",
    [
        pytest.param(properties, id=name, marks=[] if name == "plain" else pytest.mark.experiment)
        for name, properties in FEATURES.items()
    ],
)
def test_a_table_that_spark_writes_is_followed(
    user: SparkSession, tmp_path: Path, properties: dict[str, str]
) -> None:
    path = tmp_path / "product"
    table = f"delta.`{path}`"
    user.sql(
        f"CREATE TABLE {table} (id BIGINT, title STRING, day DATE, other INT) USING delta "
        f"PARTITIONED BY (day){described(properties)}"
    )
    user.sql(
        f"INSERT INTO {table} SELECT id, concat('t', id), date'2026-01-01' + cast(id % 2 AS INT), "
        "1 FROM range(0, 40, 1, 2)"
    )
    user.sql(f"DELETE FROM {table} WHERE id % 10 = 3")
    source = feed(path, tmp_path, FIELDS)
    session = source.run()
    assert told(source) == expected(user, table)
    for statement in (
        "DELETE FROM {} WHERE id % 10 = 4",
        "UPDATE {} SET title = 'changed' WHERE id % 7 = 0",
        "UPDATE {} SET id = id + 100 WHERE id = 1",
        "MERGE INTO {} t USING (SELECT explode(array(2, 900)) AS id) s ON t.id = s.id"
        " WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, title) VALUES (s.id, 'new')",
        "OPTIMIZE {}",
        "DELETE FROM {} WHERE id < 10",
    ):
        user.sql(statement.format(table))
        source.run(session)
        assert told(source) == expected(user, table), statement
    assert source.topic.copy().generation == 1


def told(source: object) -> set[tuple[object, ...]]:
    return {tuple(row.values()) for row in source.rows()}  # type: ignore[attr-defined]  # a Feed


def expected(user: SparkSession, table: str) -> set[tuple[object, ...]]:
    rows = user.sql(f"SELECT id, title, unix_date(day) FROM {table}").collect()
    return {tuple(row) for row in rows}


def test_a_renamed_column_is_found_under_its_new_name(user: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "product"
    table = f"delta.`{path}`"
    user.sql(
        f"CREATE TABLE {table} (id BIGINT, old STRING) USING delta"
        f"{described({'delta.columnMapping.mode': 'name'})}"
    )
    user.sql(f"INSERT INTO {table} VALUES (1, 'a'), (2, 'b')")
    user.sql(f"ALTER TABLE {table} RENAME COLUMN old TO title")
    user.sql(f"INSERT INTO {table} VALUES (3, 'c')")
    source = feed(path, tmp_path, FIELDS[:2])
    source.run()
    assert source.rows() == table_rows(path, "id, title")


def test_every_type_comes_as_it_is(user: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "types"
    types = (
        ("id", "BIGINT", TypeName.BIGINT, "1", 1),
        ("a", "TINYINT", TypeName.INT, "-3", -3),
        ("b", "DECIMAL(10,2)", TypeName.DECIMAL, "1.5", "1.500"),
        ("c", "DOUBLE", TypeName.DOUBLE, "0.1", 0.1),
        ("d", "BOOLEAN", TypeName.BOOLEAN, "true", True),
        ("e", "BINARY", TypeName.BYTES, "X'00FF'", "AP8="),
        ("f", "TIMESTAMP", TypeName.TIMESTAMP_LTZ, "timestamp'1970-01-01 00:00:01.5Z'", 1_500_000),
        ("g", "TIMESTAMP_NTZ", TypeName.TIMESTAMP, "timestamp_ntz'1970-01-01 00:00:02'", 2_000_000),
        ("h", "FLOAT", TypeName.DOUBLE, "0.5", 0.5),
        ("i", "STRING", TypeName.STRING, "'é\"'", 'é"'),
    )
    declared = {
        TypeName.DECIMAL: (12, 3),
        TypeName.TIMESTAMP: (6, 0),
        TypeName.TIMESTAMP_LTZ: (6, 0),
    }
    columns = ", ".join(f"{name} {kind}" for name, kind, *_ in types)
    user.sql(f"CREATE TABLE delta.`{path}` ({columns}) USING delta")
    user.sql(f"INSERT INTO delta.`{path}` SELECT {', '.join(item[3] for item in types)}")
    fields = tuple(Field(t[0], SqlType(t[2], *declared.get(t[2], (0, 0)))) for t in types)
    source = feed(path, tmp_path, fields)
    source.run()
    assert source.rows() == [{item[0]: item[4] for item in types}]
