"""Submission and `sluice doctor` say the same of a captured table and of its server.

Each case is refused, or warned about, by both in the same words; what its hint says helps.
"""

import re
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from joins.durable.checkpoint import Checkpoint
from joins.plan.plan import Dimension, Field, MysqlCdcSource
from joins.plan.types import SqlType, TypeName
from service.config import Settings
from service.connectors.mysql import MysqlTables
from service.jobs.doctor.check import Patient, made
from service.jobs.store.layout import JobLayout
from service.jobs.submit.preflight import advise
from service.security.secrets import SecretResolver
from tests.support.probe import PLAN
from tests.support.sql import new_schema, run_sql
from watermark.errors import SluiceError

BIGINT, STRING = SqlType(TypeName.BIGINT), SqlType(TypeName.STRING)
STAMP = SqlType(TypeName.TIMESTAMP, 3)
TABLE = "CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(20), at TIMESTAMP(3) NULL)"


@dataclass(frozen=True)
class Case:
    """`before` and `after` are statements of root; `hint` is run as SQL where it is a statement."""

    refused: str = ""
    warned: str = ""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    table: str = "t"
    create: str = TABLE
    fields: tuple[Field, ...] = (Field("id", BIGINT, nullable=False), Field("name", STRING))
    key: tuple[str, ...] = ("id",)
    helps: bool = field(default=False)


def setting(name, value, good, *, expected=None):
    shown = f'"{name}" = {value}, expected {expected or good}'
    back = f"SET GLOBAL {name} = '{good}'"
    return Case(shown, before=(f"SET GLOBAL {name} = '{value}'",), after=(back,), helps=True)


CASES = {
    "nothing_is_wrong": Case(),
    "row_image_minimal": setting("binlog_row_image", "MINIMAL", "FULL"),
    "row_image_noblob": setting("binlog_row_image", "NOBLOB", "FULL"),
    "row_image_full_nodup": setting("binlog_row_image", "FULL_NODUP", "FULL"),
    "row_metadata": setting("binlog_row_metadata", "MINIMAL", "FULL"),
    "format_statement": setting("binlog_format", "STATEMENT", "ROW"),
    "format_mixed": setting("binlog_format", "MIXED", "ROW"),
    "compressed": Case(
        before=("SET GLOBAL log_bin_compress = ON",), after=("SET GLOBAL log_bin_compress = OFF",)
    ),
    "triggers_of_a_replica": setting(
        "slave_run_triggers_for_rbr", "YES", "NO", expected="NO, LOGGING or ENFORCE"
    ),
    "replica_without_its_log": Case(
        "was a replica",
        before=("SET GLOBAL gtid_slave_pos = '9-9-1'",),
        after=("SET GLOBAL gtid_slave_pos = ''",),
    ),
    "engine_merge": Case(
        "has engine MRG_MyISAM",
        create="CREATE TABLE t (id BIGINT NOT NULL, name VARCHAR(20), PRIMARY KEY (id))"
        " ENGINE=MERGE UNION=()",
    ),
    "engine_memory": Case("has engine MEMORY", create=f"{TABLE} ENGINE=MEMORY", helps=True),
    "view": Case("is a view", create="CREATE VIEW t AS SELECT 1 AS id, 'a' AS name"),
    "another_case_of_the_name": Case("does not exist", table="T"),
    "no_such_table": Case("does not exist", table="tt"),
    "no_such_column": Case('"nam"', fields=(Field("id", BIGINT), Field("nam", STRING))),
    "another_key": Case("primary key", key=("name",)),
    "no_primary_key": Case("primary key", create="CREATE TABLE t (id BIGINT, name VARCHAR(20))"),
    "a_type_that_is_not_decoded": Case(
        "name", create="CREATE TABLE t (id BIGINT PRIMARY KEY, name POINT NOT NULL)"
    ),
    "cascade": Case(
        "ON DELETE CASCADE",
        create="CREATE TABLE t (id BIGINT PRIMARY KEY, name VARCHAR(20), up BIGINT,"
        " CONSTRAINT c FOREIGN KEY (up) REFERENCES t (id) ON DELETE CASCADE)",
    ),
    "timestamp_without_zone": Case(
        warned="TIMESTAMP", fields=(Field("id", BIGINT, nullable=False), Field("at", STAMP))
    ),
    "key_that_is_compared_by_collation": Case(
        warned="collation",
        create="CREATE TABLE t (name VARCHAR(20) PRIMARY KEY)",
        fields=(Field("name", STRING, nullable=False),),
        key=("name",),
    ),
}  # fmt: skip


def plan_of(database, schema, case):
    source = MysqlCdcSource(
        "127.0.0.1", database.port, database.cdc_user, database.cdc_password, schema, case.table
    )
    return replace(PLAN, dimensions=(Dimension("users", source, case.fields, case.key),))


def by_submission(plan, settings):
    """Refusal with hint, or warnings."""
    (dimension,) = plan.dimensions
    try:
        MysqlTables().check(dimension, dimension.source, settings)
    except SluiceError as exc:
        return (exc.message, exc.hint), ()
    return None, advise(plan, settings, SecretResolver(None))


def by_doctor(plan, settings, directory):
    layout = JobLayout(directory)
    patient = Patient(layout, settings, plan, Checkpoint(layout.checkpoint), None, running=False)
    (dimension,) = plan.dimensions
    examine = partial(MysqlTables().examine, patient, dimension, dimension.source)
    checks = made("source users", examine)
    bad = [(each.detail, each.hint) for each in checks if each.ok is False]
    warned = [e.detail for e in checks if e.ok is None and e.name.startswith("declaration")]
    assert len(bad) <= 1
    return bad[0] if bad else None, tuple(warned)


def statement_of(hint):
    found = re.search(r"SET GLOBAL \w+=[^ ,]+|ALTER TABLE \S+ ENGINE=InnoDB", hint)
    return None if found is None else found[0]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_both_say_the_same_and_the_hint_helps(case, own_database, tmp_path):
    settings = Settings.load(data_dir=tmp_path)
    with new_schema(own_database, case.create) as schema:
        try:
            if case.before:
                run_sql(own_database, *case.before)
            plan = plan_of(own_database, schema, case)
            refusal, warned = by_submission(plan, settings)
            assert by_doctor(plan, settings, tmp_path) == (refusal, warned)
            assert (refusal is not None) == bool(case.refused)
            assert bool(warned) == bool(case.warned)
            assert case.warned in "".join(warned)
            if refusal is not None:
                message, hint = refusal
                assert case.refused in message
                assert hint
            if case.helps:
                run_sql(own_database, statement_of(hint))
                assert by_submission(plan, settings) == (None, ())
                assert by_doctor(plan, settings, tmp_path) == (None, ())
        finally:
            run_sql(own_database, *case.after) if case.after else None
