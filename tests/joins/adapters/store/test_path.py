"""Paths of a store go where those of a directory go: one table of laws for both."""

import pickle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from werkzeug.wrappers import Response

from joins.adapters.delta.entries import LogEntries
from joins.adapters.store_client import StoreAddress, client_of
from joins.adapters.store_path import StorePath, path_as_json, path_from_json, size_and_rows
from joins.kernels.probe.files import FileOrigin, ParquetStage
from joins.kernels.table_path import TablePath, dataset_of, readable
from joins.plan.connections import S3_ENDPOINT, S3_KEY, S3_SECRET, StoreTable
from joins.plan.errors import StoreRefusedError, StoreUnavailableError
from tests.support.beside import at_once
from tests.support.object_store import ObjectStore
from tests.support.store_tables import check_a_table_of_a_store
from watermark.errors import Secret

SCHEMA = pa.schema([("id", pa.int64()), ("text", pa.string())])


@pytest.fixture(params=["directory", "store"])
def root(request: pytest.FixtureRequest, store: ObjectStore, tmp_path: Path) -> TablePath:
    name = f"laws/{tmp_path.name}"
    return tmp_path / name if request.param == "directory" else store.path(name)


def rows(*ids: int) -> pa.RecordBatch:
    return pa.record_batch([list(ids), [f"text {i}" for i in ids]], schema=SCHEMA)


def staged(root: TablePath, *ids: int) -> TablePath:
    with ParquetStage(root, SCHEMA, FileOrigin(1, 2, 3, 4)) as stage:
        stage.write(rows(*ids))
        file = stage.finish()
    assert file is not None
    assert (file.rows, file.size_bytes) == (len(ids), (root / file.path).stat().st_size)
    return root / file.path


def begun(root: TablePath) -> LogEntries:
    if isinstance(root, Path):
        (root / "_delta_log").mkdir(parents=True)
    return LogEntries(root)


def test_a_staged_file_is_read_whole_in_columns_and_by_a_condition(root: TablePath) -> None:
    file = staged(root, 1, 2, 3)
    assert pq.read_metadata(readable(file)).num_rows == 3
    assert pq.read_table(readable(file), columns=["id"]).column(0).to_pylist() == [1, 2, 3]
    found = dataset_of([file, staged(root, 4)], SCHEMA).to_table(filter=pa.compute.field("id") > 2)
    assert sorted(found.column("text").to_pylist()) == ["text 3", "text 4"]


def test_no_files_have_no_rows() -> None:
    assert dataset_of([], SCHEMA).to_table().num_rows == 0


def test_a_stage_that_was_given_up_leaves_nothing(root: TablePath) -> None:
    with ParquetStage(root, SCHEMA, FileOrigin(1, 2, 3, 4)) as stage:
        stage.write(rows(1))
    assert not isinstance(root, Path) or list(root.iterdir()) == []
    assert isinstance(root, Path) or list(root.iterdir()) == []


def test_what_is_missing_is_missing_in_either(root: TablePath) -> None:
    file = root / "part.parquet"
    assert not file.exists()
    for attempt in (file.stat, file.read_bytes, lambda: pq.read_table(readable(file))):
        with pytest.raises(FileNotFoundError):
            attempt()
    file.unlink(missing_ok=True)


def test_entries_are_put_once_and_found_by_name(root: TablePath) -> None:
    log = begun(root)
    assert [log.put(0, [{"a": 1}]), log.put(1, [{"a": 2}]), log.put(1, [{"a": 3}])] == [
        *(True, True, False)
    ]
    assert (log.read(1), log.numbers(), log.oldest()) == ([{"a": 2}], [0, 1], 0)
    assert (log.has(1), log.has(2), log.follows(1), log.follows(7)) == (True, False, True, False)
    assert (log.newest_before(0.0), log.newest_before(4e9)) == (-1, 1)
    log.remove(0)
    assert (log.oldest(), log.numbers(), log.checkpoints()) == (1, [1], [])


def test_of_many_writers_of_an_entry_one_succeeds(root: TablePath) -> None:
    log = begun(root)
    created = at_once(lambda number: log.put(3, [{"writer": number}]), range(8))
    assert sorted(created) == [False] * 7 + [True]


def test_a_large_object_is_read_in_ranges(store: ObjectStore) -> None:
    file = store.path("large.bin")
    file.put(bytes(17 << 20) + b"end")
    before = store.sent
    with file.open_input() as opened:
        opened.seek(17 << 20)
        assert opened.read() == b"end"
    assert store.sent - before < 40 << 20


def test_a_put_whose_answer_was_lost_finds_its_own_object(store: ObjectStore) -> None:
    file = store.path("lost/answer")
    store.answers_to_lose = 1
    assert file.create(b"mine")
    assert not file.create(b"theirs")
    assert file.read_bytes() == b"mine"


def test_a_throttled_store_is_asked_again(store: ObjectStore) -> None:
    file, throttled = store.path("throttled"), iter([True, True])
    store.fault = lambda _: Response(status=503) if next(throttled, False) else None
    try:
        assert file.create(b"x")
    finally:
        store.fault = lambda _: None


FAULTS = {
    "expired": (403, "<Code>ExpiredToken</Code>", "valid now"),
    "unauthorized": (401, "<Code>AccessDenied</Code>", "valid now"),
    "skewed": (403, "<Code>RequestTimeTooSkewed</Code>", "clock"),
    "skewed_in_azure": (403, "<Message>Request date header too old: Mon</Message>", "clock"),
}


@pytest.mark.parametrize(("status", "code", "hint"), FAULTS.values(), ids=FAULTS)
def test_a_refusal_says_what_to_do(store: ObjectStore, status: int, code: str, hint: str) -> None:
    file = store.path("kept")
    file.put(b"content")
    store.fault = lambda _: Response(f"<Error>{code}</Error>", status=status)
    try:
        with pytest.raises(StoreRefusedError, match="refuses") as raised:
            file.read_bytes()
    finally:
        store.fault = lambda _: None
    assert hint in raised.value.hint
    assert "ci-secret-key" not in str(raised.value)
    assert file.read_bytes() == b"content", "credentials that are valid again"


def test_a_store_that_is_away_is_unavailable(store: ObjectStore) -> None:
    options = ((S3_ENDPOINT, "http://127.0.0.1:1"), (S3_KEY, "a"), (S3_SECRET, "b"))
    with pytest.raises(StoreUnavailableError, match="does not serve"):
        StorePath.of("s3://tables/x", options).read_bytes()
    assert not store.path("x").exists(), "a server that answers"


def test_in_a_bucket_that_keeps_versions_tables_are_written_once_fenced_and_kept_small(
    store: ObjectStore,
) -> None:
    versioning = {"Status": "Enabled"}
    store.client.put_bucket_versioning(Bucket=store.bucket, VersioningConfiguration=versioning)
    check_a_table_of_a_store(store.path("versioned/out"))
    kept = store.client.list_object_versions(Bucket=store.bucket)
    assert kept["DeleteMarkers"], "the bucket keeps what was removed, as it was told"


def test_paths_are_copied_compared_and_shown_without_their_credentials(store: ObjectStore) -> None:
    options = ((S3_KEY, "id"), (S3_SECRET, Secret("s-e-c-r-e-t", "${secret:s}")))
    path = StorePath.of("s3a://tables/a/b/", options) / "c"
    assert (str(path), path.name, str(path.parent)) == ("s3://tables/a/b/c", "c", "s3://tables/a/b")
    assert path == pickle.loads(pickle.dumps(path)) == path_from_json(path_as_json(path))
    assert "s-e-c-r-e-t" not in f"{path!r} {path.store!r} {path.store}"
    assert path_from_json(path_as_json(Path("/a/b"))) == Path("/a/b")


def test_credentials_of_a_table_and_of_the_environment_never_go_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", "of-somebody-else")
    options = ((S3_KEY, "id"), (S3_SECRET, "secret"))
    with pytest.raises(StoreRefusedError, match="AWS_SESSION_TOKEN"):
        StoreAddress.of(StoreTable.of("s3://tables/x"), options)
    StoreAddress.of(StoreTable.of("s3://tables/x"), ())
    monkeypatch.delenv("AWS_SESSION_TOKEN")
    StoreAddress.of(StoreTable.of("s3://tables/x"), options)


def test_half_a_credential_is_refused_and_the_whole_one_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    table = StoreTable.of("s3://tables/x")
    with pytest.raises(StoreRefusedError, match="as it is declared"):
        client_of(StoreAddress.of(table, ((S3_KEY, "id"),)))
    client_of(StoreAddress.of(table, ((S3_KEY, "id"), (S3_SECRET, "secret"))))


def test_the_footer_of_a_wide_file_is_read_whole(store: ObjectStore) -> None:
    schema = pa.schema([(f"a_column_with_a_long_name_{i}", pa.int64()) for i in range(600)])
    with ParquetStage(store.path("wide"), schema, FileOrigin(1, 2, 3, 4)) as stage:
        stage.write(pa.record_batch([[7]] * 600, schema=schema))
        file = stage.finish()
    assert file is not None
    path = store.path("wide") / file.path
    assert size_and_rows(path, file.size_bytes) == (file.size_bytes, 1)
    for wrong in (file.size_bytes - 1, file.size_bytes + 1, 10 * file.size_bytes):
        assert size_and_rows(path, wrong) == (file.size_bytes, 0)
