"""The bad hour in a real browser: the page says what is wrong, with what, and what to do.

Each test then does what the page says, as an operator would, and the page must come to say that all
is well. One job, on a broker, a database and a disk that are its own, goes through all of it.
"""

import re
from dataclasses import dataclass

import pytest

from service.embedded.broker import BrokerSettings, KafkaBroker
from service.embedded.database import MariaDb
from tests.support.axe import axe_source, violations
from tests.support.full_disk import SmallDisk, small_disk
from tests.support.program import run_program
from tests.support.rig import RunningJob, running_rig
from tests.support.shop import USERS, click, enrich_sql, fill_users
from tests.support.sql import new_schema, run_sql
from tests.support.topics import create_topic, produce, unique_name
from tests.support.wait import wait_until

pytestmark = pytest.mark.experiment
DISK_MIB = 256
SECRET = "shop-database"
WITHIN_S = 150
HANG_S = 12  # a runner that is silent for so long is killed


@dataclass
class Shop:
    """The job, what it reads and writes, and the page that shows it."""

    job: RunningJob
    kafka: KafkaBroker
    database: MariaDb
    schema: str
    topic: str
    path: str
    disk: SmallDisk
    browser: object
    clicks: int = 0

    def provide(self, name: str, password: str) -> None:
        data = str(self.job.rig.settings.data_dir)
        done = run_program("secrets", "set", name, given=password.encode(), SLUICE_DATA_DIR=data)
        assert done.returncode == 0, done.stderr

    def sql(self, *statements: str) -> None:
        run_sql(self.database, *statements, schema=self.schema)

    def click(self) -> None:
        produce(self.kafka.bootstrap_servers, self.topic, [click(1, self.clicks)])
        self.clicks += 1

    def until(self, expected: str, selector: str) -> str:
        return self.browser.until(expected, selector, deadline_s=WITHIN_S)

    def is_well(self) -> None:
        """The page says so, and so does the output: a new record comes out, once."""
        self.click()
        self.job.wait_output(self.path, self.clicks, deadline_s=WITHIN_S)
        self.until("Running", ".title .state")
        well = ("joined as they arrive", "new ones are joined as they come")
        self.browser.wait(
            lambda: any(each in self.browser.text("#why") for each in well),
            "all is well",
            deadline_s=WITHIN_S,
        )
        self.browser.wait(lambda: not self.browser.text("#problems"), "no fault is shown")
        items = [row["item_id"] for row in self.job.rig.rows(self.path)]
        assert sorted(items) == list(range(self.clicks))

    def order(self, name: str, state: str) -> None:
        """Press the button of an order, and say yes."""
        self.browser.find(f"[data-order={name}]").click()
        self.browser.until("Yes,", ".orders")
        self.browser.find("[data-action=order-yes]").click()
        self.until(state, ".title .state")


@pytest.fixture(scope="module")
def disk(tmp_path_factory, processes):
    with small_disk(tmp_path_factory.mktemp("disk") / "small", DISK_MIB) as disk:
        yield disk


@pytest.fixture(scope="module")
def shop(disk, tmp_path_factory, java, broker_jars, database_home, spark_jars, chromium):
    directory = tmp_path_factory.mktemp("shop")
    patience = {"runner_hang_report_s": HANG_S, "runner_hang_kill_s": HANG_S}
    with (
        KafkaBroker(directory / "kafka", java, broker_jars, BrokerSettings(heap="384m")) as kafka,
        MariaDb(directory / "db", database_home) as database,
        running_rig(disk.root / "data", kafka, database, **patience) as rig,
        new_schema(database, USERS, fill_users(50)) as schema,
    ):
        topic, path = create_topic(kafka.bootstrap_servers), unique_name("enriched")
        written = f"'password'='{database.cdc_password}'"
        sql = enrich_sql(rig, schema, topic, path)
        assert written in sql
        referring = sql.replace(written, f"'password'='${{secret:{SECRET}}}'")
        shop = Shop(None, kafka, database, schema, topic, path, disk, chromium)
        shop.job = RunningJob(rig, "")
        shop.provide(SECRET, database.cdc_password)
        with rig.job(referring) as job:
            shop.job = job
            job.wait_joining()
            yield shop


@pytest.fixture(autouse=True)
def page(shop, shaken):
    shaken.open(f"{shop.job.rig.client.base_url}/#/jobs/{shop.job.id}")
    shop.is_well()


def test_a_password_that_was_changed(shop, browser):
    """The account has a new one: `sluice secrets set`, then stop and resume, as the page says."""
    user = f"{shop.database.cdc_user}@'{shop.database.host}'"
    shop.sql(f"ALTER USER {user} IDENTIFIED BY 'another one'")
    shop.sql(f"KILL USER {user}")
    told = shop.until("refused user", "#why")
    assert f'database server "{shop.database.host}:{shop.database.port}"' in told
    assert f'user "{shop.database.cdc_user}"' in told
    browser.find("#tab-script").click()
    (name,) = re.findall(r"\$\{secret:([^}]+)\}", browser.until("${secret:", "#script pre"))
    assert f"sluice secrets set {name};" in told
    assert f"sluice jobs resume {shop.job.id}" in told
    shop.provide(name, "another one")
    shop.order("stop", "Stopped")
    shop.order("resume", "Running")
    shop.is_well()


def test_a_broker_that_stands_still(shop, browser):
    """It is started again, and nothing else is done."""
    shop.kafka.stop()
    told = shop.until("has not answered since", "#why")
    assert f'Kafka "{shop.kafka.bootstrap_servers}"' in told
    assert "that the broker runs" in told
    shop.kafka.start()
    shop.is_well()


def test_a_disk_that_is_full(shop, browser):
    """Data directory and output are on it; somebody else's file is deleted."""
    runner = shop.job.runner()
    with shop.disk.filling():
        shop.click()
        told = shop.until("disk", "#why")
        full = f'the disk of data directory "{shop.job.rig.settings.data_dir}" is full: '
        assert re.search(rf"(?i){re.escape(full)}\d{{1,2}} of {DISK_MIB} MiB are free", told), told
        assert "Free space on that disk" in told
        shop.until("Waiting for disk space", ".title .state")
        browser.find("#why details summary").click()
        shop.until("disk has room", "#why details[open]")
        wait_until(lambda: silence_ms(shop) > 1_500 * HANG_S, deadline_s=WITHIN_S)
        shop.disk.ballast.unlink()
        shop.is_well()
    assert shop.job.runner() == runner, "it was not killed because it could not report"


def silence_ms(shop):
    return shop.job.status()["runner"]["status_age_ms"]


def test_a_column_that_was_dropped(shop, browser):
    """It is added again as it was, and the table copied anew by itself."""
    shop.sql("ALTER TABLE user_info DROP COLUMN gender")
    shop.sql("UPDATE user_info SET name = 'changed' WHERE user_id = 2")
    told = shop.until('has no column "gender"', "#why")
    assert f'"{shop.schema}.user_info"' in told
    assert "ADD COLUMN" in told
    shop.sql("ALTER TABLE user_info ADD COLUMN gender VARCHAR(8)")
    shop.is_well()


def test_nobody_is_kept_out_of_a_page_with_a_fault(shop, browser):
    shop.kafka.stop()
    shop.until("has not answered since", "#why")
    assert violations(browser, axe_source()) == []
    shop.kafka.start()
    shop.is_well()
