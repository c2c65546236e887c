"""Chunks cover every row exactly once, whatever the primary key is."""

import pytest

from joins.adapters.mysql.chunks import (
    Chunk,
    SnapshotTask,
    chunk_bounds,
    read_chunk,
    snapshot_chunk_records,
)
from joins.adapters.mysql.position import server_identity, take_low
from joins.adapters.mysql.source import check_source
from joins.plan.plan import Field, MetadataField
from joins.plan.types import SqlType, TypeName
from tests.support.sql import cdc_connection, new_schema, run_sql

BIG, TEXT, RAW = (SqlType(TypeName(n)) for n in ("BIGINT", "STRING", "BYTES"))
DEC = SqlType(TypeName.DECIMAL, 20, 0)
DOUBLE = SqlType(TypeName.DOUBLE)
TS = SqlType(TypeName.TIMESTAMP, 6)
LTZ = SqlType(TypeName.TIMESTAMP_LTZ, 6)

# columns of the key, their declared types, a SELECT that fills it from the numbers 1 to 300
KEYS = {
    "dense": ("a BIGINT", (BIG,), "seq"),
    "sparse_and_negative": ("a BIGINT", (BIG,), "POW(CAST(seq AS SIGNED), 3) - 1000000"),
    "unsigned_beyond_63_bits": ("a BIGINT UNSIGNED", (DEC,), "18446744073709551615 - seq"),
    "decimal": ("a DECIMAL(20,0)", (DEC,), "seq * 1000000007"),
    "double": ("a DOUBLE", (DOUBLE,), "seq / 7"),
    "text_without_case": (
        "a VARCHAR(40)",
        (TEXT,),
        "CONCAT(ELT(1+seq%4, 'é', 'Z', 'a''\\\\', ' '), seq)",
    ),
    "text_latin1": ("a VARCHAR(40) CHARACTER SET latin1", (TEXT,), "CONCAT('é', seq)"),
    "uuid_text": ("a CHAR(36)", (TEXT,), "UUID()"),
    "uuid_bytes": ("a BINARY(16)", (RAW,), "UNHEX(MD5(seq))"),
    "varbinary_with_zeros": ("a VARBINARY(9)", (RAW,), "CONCAT(x'00', seq, x'00')"),
    "enum_and_number": ("a ENUM('z','m','a'), b INT", (TEXT, BIG), "ELT(1+seq%3,'z','m','a'), seq"),
    "datetime": ("a DATETIME(6)", (TS,), "'2026-01-01' + INTERVAL seq*1001 MICROSECOND"),
    "timestamp": ("a TIMESTAMP(6)", (LTZ,), "'2026-01-01' + INTERVAL seq*1001 MICROSECOND"),
    "composite_skewed": (
        "a INT, b VARCHAR(20), c INT",
        (BIG, TEXT, BIG),
        "seq > 10, CONCAT('k', seq % 3), seq",
    ),
}


def checked(mariadb, schema: str, columns: str, types):
    names = tuple("abc"[: len(types)])
    run_sql(
        mariadb,
        f"CREATE TABLE t ({columns}, v INT, PRIMARY KEY ({', '.join(names)}))",
        schema=schema,
    )
    fields = (*(Field(n, t) for n, t in zip(names, types, strict=True)), Field("v", BIG))
    config = cdc_connection(mariadb, schema)
    return config, check_source(config, fields, names)


def values_of(config, table, chunk: Chunk) -> list[int]:
    return [v for batch in read_chunk(config, table, chunk) for v in batch.column("v").to_pylist()]


@pytest.mark.parametrize(("columns", "types", "expression"), KEYS.values(), ids=KEYS)
def test_chunks_cover_each_row_once(mariadb, columns, types, expression):
    with new_schema(mariadb) as schema:
        config, table = checked(mariadb, schema, columns, types)
        run_sql(mariadb, f"INSERT INTO t SELECT {expression}, seq FROM seq_1_to_300", schema=schema)
        chunks = list(chunk_bounds(config, table, rows_each=70))
        read = [values_of(config, table, chunk) for chunk in chunks]
        assert [len(values) for values in read] == [70, 70, 70, 70, 20]
        assert sorted(v for values in read for v in values) == list(range(1, 301))


SIZES = {
    "empty": (0, 1),
    "one": (1, 1),
    "one_full_chunk": (10, 1),
    "one_more": (11, 2),
    "two": (20, 2),
}


@pytest.mark.parametrize(("count", "expected"), SIZES.values(), ids=SIZES)
def test_number_of_chunks(mariadb, count, expected):
    with new_schema(mariadb) as schema:
        config, table = checked(mariadb, schema, "a BIGINT", (BIG,))
        for key in range(count):
            run_sql(mariadb, f"INSERT INTO t VALUES ({key}, {key})", schema=schema)
        chunks = list(chunk_bounds(config, table, rows_each=10))
        assert len(chunks) == expected
        assert chunks[0].after is None
        assert chunks[-1].through is None
        assert list(chunk_bounds(config, table, rows_each=10, after=chunks[0].through)) == chunks[
            1:
        ] or (expected == 1)


def test_records_of_a_chunk_carry_low_and_the_generation(mariadb):
    with new_schema(mariadb) as schema:
        config, table = checked(mariadb, schema, "a BIGINT", (BIG,))
        run_sql(mariadb, "INSERT INTO t VALUES (7, 8)", schema=schema)
        low = take_low(config, 2).position
        task = SnapshotTask(
            config.of_server(server_identity(config)), table, low, generation=5, partitions=1
        )
        (batch,) = snapshot_chunk_records(task, Chunk(None, None))
        (record,) = batch.to_pylist()
        assert record["key"] == b'{"a":7}'
        assert record["partition"] == 0
        source = f'"source":{{"epoch":2,"file":{low.file},"pos":{low.pos},"row":-1,"gen":5,"ts_ms":'
        start = f'{{"before":null,"after":{{"a":7,"v":8}},"op":"r",{source}'
        assert record["value"].decode().startswith(start)


COUNTS = {
    "full": (30, 20, 10),
    "empty_first": (0, 25, 10),
    "empty_between": (5, 0, 0, 11),
    "empty_last": (10, 0),
    "all_empty": (0, 0, 0),
    "one_table": (21,),
}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_chunks_of_several_tables_cover_each_row_once(mariadb, counts):
    """Also those that are read as one, and those from any bound on."""
    with new_schema(mariadb) as schema:
        for at, count in enumerate(counts):
            run_sql(
                mariadb,
                f"CREATE TABLE `t_{at}` (a BIGINT PRIMARY KEY, v INT)",
                f"INSERT INTO t_{at} SELECT seq, seq FROM seq_1_to_60 LIMIT {count}",
                schema=schema,
            )
        run_sql(mariadb, "CREATE TABLE u_1 (a BIGINT PRIMARY KEY)", schema=schema)
        name = MetadataField("t", "table_name", TEXT)
        config = cdc_connection(mariadb, schema, "t_[0-9]+", metadata=(name,))
        fields = (Field("t", TEXT), Field("a", BIG), Field("v", BIG))
        table = check_source(config, fields, ("t", "a"))
        expected = sorted((f"t_{at}", v) for at, n in enumerate(counts) for v in range(1, n + 1))

        def read(chunk):
            batches = list(read_chunk(config, table, chunk))
            return [
                (t, v) for b in batches for t, _, v in zip(*b.to_pydict().values(), strict=True)
            ]

        chunks = list(chunk_bounds(config, table, rows_each=10))
        assert (chunks[0].after, chunks[-1].through) == (None, None)
        assert sorted(row for chunk in chunks for row in read(chunk)) == expected
        for first, chunk in enumerate(chunks):
            rest = list(chunk_bounds(config, table, rows_each=10, after=chunk.after))
            assert rest == chunks[first:]
            for last in chunks[first:]:
                whole = Chunk.from_text(Chunk(chunk.after, last.through).as_text())
                parts = [row for c in chunks[first : chunks.index(last) + 1] for row in read(c)]
                assert sorted(read(whole)) == sorted(parts)
