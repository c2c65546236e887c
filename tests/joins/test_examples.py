"""The examples of the documents, each run to the end of its records: they give what they promise.

Topics are made and filled by the commands of their pages.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from service.embedded.broker import KafkaBroker
from service.embedded.database import MariaDb
from tests.support.examples import CAPTURED, DIRECTORY, SCRIPTS, prepare_program, run_commands
from tests.support.run_here import JobHere, jobs_here
from tests.support.sql import run_sql

EXAMPLES = [path for path in SCRIPTS if path != CAPTURED]
BATCH = "SET 'execution.runtime-mode' = 'batch';\n"
ENDLESS, ENDS = "'rows-per-second' = '20'", "'rows-per-second' = '1000', 'number-of-rows' = '400'"
NULL = None


@pytest.fixture(scope="module")
def prepare() -> ModuleType:
    return prepare_program()


@pytest.fixture(scope="module")
def done(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaBroker,
    mariadb: MariaDb,
    spark: SparkSession,
    prepare: ModuleType,
) -> Iterator[dict[str, Future[JobHere]]]:
    """Each example's job, which has ended; all of them run beside each other."""
    bootstrap = kafka.bootstrap_servers
    places = {"mariadb-host": mariadb.host, "mariadb-port": str(mariadb.port), "kafka": bootstrap}

    def run(example: Path) -> JobHere:
        text = BATCH + (example / "script.sql").read_text().replace(ENDLESS, ENDS)
        job = jobs.submit(prepare.filled(text, places), example.name)
        assert job.run().is_finished
        return job

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLUICE_SECRET_MARIADB", mariadb.cdc_password)
        for example in EXAMPLES:
            page = (example / "README.md").read_text()
            run_commands(page[: page.index("    sluice submit ")], example, bootstrap)
            data = example / "data.sql"
            run_sql(mariadb, *(prepare.statements(data.read_text()) if data.exists() else ()))
        with (
            jobs_here(tmp_path_factory.mktemp("examples"), bootstrap, spark) as jobs,
            ThreadPoolExecutor(len(EXAMPLES)) as pool,
        ):
            yield {example.name: pool.submit(run, example) for example in EXAMPLES}


def rows_of(job: JobHere, table: str, *columns: str) -> list[tuple[Any, ...]]:
    path = job.jobs.settings.warehouse_dir / table
    rows = DeltaTable(path).to_pyarrow_table(columns=list(columns)).to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


def letters_of(job: JobHere) -> list[int]:
    path = job.layout.dead_letters
    there = DeltaTable.is_deltatable(str(path))
    return DeltaTable(path).to_pyarrow_table()["offset"].to_pylist() if there else []


def check_clicks(job: JobHere) -> None:
    rows = rows_of(job, "example_visits", "user_id", "name", "page")
    assert len(rows) == 400
    assert all(name == (f"user {user}" if user <= 500 else NULL) for user, name, _ in rows)
    assert {page for _, _, page in rows} == {"/home", "/cart", "/search", "/help"}


def check_orders(job: JobHere) -> None:
    rows = rows_of(job, "example_priced", "id", "price")
    prices = [(order, NULL if price is None else float(price)) for order, price in rows]
    assert prices == [(1, 105.0), (2, 110.0), (3, 85.0), (4, 110.0), (5, NULL), (6, 120.0)]


def check_payments(job: JobHere) -> None:
    assert rows_of(job, "example_alerts", "payment", "owner", "why") == [
        (2, "Ada", "above the usual limit"),
        (3, "Grace", "above the usual limit"),
        (4, "Mallory", "blocked account"),
    ]
    assert letters_of(job) == [6]


def check_changes(job: JobHere) -> None:
    assert rows_of(job, "example_history", "id", "op", "city", "day") == [
        (1, "r", "London", "2026-01-01"),
        (2, "r", "New York", "2026-01-01"),
        (2, "u", "Arlington", "2026-01-02"),
        (3, "c", "Rotterdam", "2026-01-01"),
        (3, "d", NULL, "2026-01-02"),
    ]
    assert letters_of(job) == []


def check_too_early(job: JobHere) -> None:
    """The failure that FLIP-326 shows (acceptance B04), beside the rows of a join that waits."""
    assert rows_of(job, "example_compared", "id", "joined_too_early", "name") == [
        (1, NULL, "Ada"),
        (2, NULL, "Grace"),
        (3, NULL, NULL),
        (4, "Ada", "Ada"),
        (5, "Edsger", "Edsger"),
    ]
    assert letters_of(job) == []


CHECKS = {
    "clicks-and-users": check_clicks,
    "orders-and-rates": check_orders,
    "payments-and-rules": check_payments,
    "changes-into-a-lake": check_changes,
    "joined-too-early": check_too_early,
}


@pytest.mark.parametrize(("name", "check"), CHECKS.items(), ids=CHECKS)
def test_an_example_gives_what_its_page_says(done, name, check):
    check(done[name].result(timeout=240))


def test_every_example_is_checked():
    assert {path.name for path in EXAMPLES} == set(CHECKS)
    assert ENDLESS in (DIRECTORY / "clicks-and-users/script.sql").read_text()
