"""The example whose table is PostgreSQL's, by way of Debezium, as its page says to do it."""

import argparse
from decimal import Decimal

import pytest

from service.demo.shop import provide_debezium
from service.demo.up import captured_shop
from tests.support.examples import CAPTURED, prepare_program, run_commands

PAGE = (CAPTURED / "README.md").read_text()
FIRST, REST = PAGE.split("    sluice submit ")
ABOVE, NOBODY = "above the credit", "nobody has this number"


@pytest.fixture
def shop(rig, java, jar_cache, tmp_path):
    binaries = provide_debezium(jar_cache.directory, java)
    with captured_shop(tmp_path, java, binaries, rig.kafka) as shop:
        yield shop


def held(rig):
    rows = rig.rows("example_held")
    return {row["order_id"]: (row["customer"], row["amount"], row["why"]) for row in rows}


@pytest.mark.experiment
def test_the_example_gives_what_its_page_says_before_and_after_a_change(rig, shop):
    servers, prepare = rig.kafka.bootstrap_servers, prepare_program()
    run_commands(FIRST, CAPTURED, servers)
    script = prepare.filled((CAPTURED / "script.sql").read_text(), {"kafka": servers})
    with rig.job(script) as job:
        job.wait_joining()
        job.wait_output("example_held", 3)
        assert held(rig) == {
            2: ("customer 100", Decimal("2.50"), ABOVE),
            4: (None, Decimal("1.00"), NOBODY),
            5: ("customer 7", Decimal("0.08"), ABOVE),
        }
        prepare.run_postgres(argparse.ArgumentParser(), shop.client_file, CAPTURED / "change.sql")
        job.wait_for(
            lambda status: status["dimensions"][0]["streamed_records"] >= 2,
            "both changes have come",
        )
        version = job.status()["dimensions"][0]["changelog_version"]
        job.wait_for(
            lambda status: (status["dimensions"][0]["index_version"] or 0) >= version,
            "the changes can be looked up",
        )
        run_commands(REST, CAPTURED, servers)
        job.wait_output("example_held", 5)
        assert {order: held(rig)[order] for order in held(rig) if order > 5} == {
            7: ("customer 7", Decimal("0.08"), ABOVE),
            8: (None, Decimal("4.20"), NOBODY),
        }
