"""Tables that are read again and again: what submission, doctor, verify and lineage say of them."""

from dataclasses import replace
from functools import partial

import pytest

from joins.adapters.polled.table import PolledState
from joins.durable.checkpoint import Checkpoint, write_document
from joins.plan.errors import SourceError, VerificationError
from joins.plan.plan import Database, DatasetName, Dimension, Field, PolledSource
from joins.plan.types import SqlType, TypeName
from service.config import Settings
from service.connectors.polled import PolledTables
from service.jobs.doctor.check import Patient, made
from service.jobs.store.layout import JobLayout
from service.jobs.submit.preflight import check_staleness
from tests.support.polled import mariadb_table, postgres_table
from tests.support.probe import PLAN

ID, NAME = (
    Field("id", SqlType(TypeName.BIGINT), nullable=False),
    Field("name", SqlType(TypeName.STRING)),
)
POLLED = PolledTables()
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(9))"


@pytest.fixture(params=list(Database))
def dimension(request, postgres, mariadb, tmp_path):
    kind = request.param
    made_table = postgres_table if kind is Database.POSTGRESQL else mariadb_table
    server = postgres if kind is Database.POSTGRESQL else mariadb
    with made_table(server, tmp_path, TABLE) as one:
        config = one.connection
        source = PolledSource(
            kind, config.hostname, config.port, config.username, config.password, config.database,
            config.table, refresh_ms=10_000,
        )  # fmt: skip
        yield Dimension("users", source, (ID, NAME), ("id",))


def doctor(dimension, tmp_path):
    settings = Settings.load(data_dir=tmp_path)
    plan = replace(PLAN, dimensions=(dimension,))
    layout = JobLayout(tmp_path / "job")
    checkpoint = Checkpoint(layout.checkpoint)
    patient = Patient(layout, settings, plan, checkpoint, None, running=False)
    (check,) = made("source users", partial(POLLED.examine, patient, dimension, dimension.source))
    return check, checkpoint.source_file("users")


def test_doctor_and_submission_agree(dimension, tmp_path):
    settings = Settings.load(data_dir=tmp_path)
    POLLED.check(dimension, dimension.source, settings)
    check, state_file = doctor(dimension, tmp_path)
    assert check.ok is True
    assert "fits its declaration" in check.detail
    state_file.parent.mkdir(parents=True)
    write_document(state_file, PolledState(1, done=3, sent=3, rows=0, started_ms=1))
    assert "read 3 began" in doctor(dimension, tmp_path)[0].detail
    wrong = replace(dimension, fields=(ID, replace(NAME, name="nmae")))
    with pytest.raises(SourceError, match='"nmae"') as caught:
        POLLED.check(wrong, wrong.source, settings)
    check, _ = doctor(wrong, tmp_path)
    assert (check.ok, check.detail, check.hint) == (False, caught.value.message, caught.value.hint)


def test_a_bound_below_the_interval_of_whole_reads_is_refused(dimension, tmp_path):
    settings = Settings.load(data_dir=tmp_path)
    check_staleness(replace(dimension, max_staleness_ms=30_000), settings)
    with pytest.raises(SourceError, match="asked each 10 s") as caught:
        check_staleness(replace(dimension, max_staleness_ms=9_000), settings)
    assert "scan.refresh-interval" in caught.value.hint
    by_column = replace(dimension.source, column="id", whole_refresh_ms=60_000)
    with pytest.raises(SourceError, match="asked each 60 s"):
        check_staleness(replace(dimension, source=by_column, max_staleness_ms=30_000), settings)


def test_it_is_not_verified_beside_its_reads(dimension, tmp_path):
    with pytest.raises(VerificationError, match="by each read of all rows"):
        POLLED.copied(dimension, tmp_path / "users.json")


def test_lineage_names_the_database():
    source = PolledSource(Database.POSTGRESQL, "db", 5432, "u", "p", "shop", "t", refresh_ms=1_000)
    assert source.dataset == DatasetName("postgres://db:5432", "shop.public.t")
    assert replace(source, table="crm.t").dataset.name == "shop.crm.t"
    mysql = replace(source, database_kind=Database.MYSQL, port=3306)
    assert mysql.dataset == DatasetName("mysql://db:3306", "shop.t")
