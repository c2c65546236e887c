"""The numbered plans of a job, and which of them the next start runs."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from joins.durable.checkpoint import Checkpoint, write_json_atomically
from joins.durable.pins import PinStore
from joins.plan.errors import CheckpointError
from joins.plan.plan import JoinPlan
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout
from service.jobs.store.plans import JobPlans
from service.security.secrets import references
from tests.support.control_plane import ROOT
from tests.support.probe import PIN, PLAN, USERS


@pytest.fixture
def layout(tmp_path):
    layout = JobLayout(tmp_path / "job")
    layout.create()
    layout.plan.write_bytes(plan_codec.dump(PLAN))
    return layout


def numbered(number: int) -> JoinPlan:
    return replace(PLAN, number=number, sink_table=f"plan {number}")


def test_a_directory_of_an_older_release_has_plan_1(layout):
    document = json.loads(layout.plan.read_bytes())
    del document["number"]
    layout.plan.write_text(json.dumps(document))
    plans = JobPlans(layout)
    assert plans.newest_number == 1
    assert plans.newest() == plans.to_run() == PLAN
    assert not plans.has_newer(1)


def test_the_newest_plan_is_the_job_s_and_each_stays_readable(layout):
    plans = JobPlans(layout)
    for number in range(2, 13):  # 10 follows 9
        assert plans.add(numbered(number))
        assert plans.has_newer(number - 1)
    assert plans.newest() == numbered(12)
    assert [plan.number for plan in plans.all()] == list(range(1, 13))
    assert plans.read(1) == PLAN
    assert plans.read(9) == numbered(9)


def test_one_of_two_updates_at_once_is_the_plan(layout):
    one, other = numbered(2), replace(numbered(2), sink_table="other")
    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(JobPlans(layout).add, [one, other] * 8))
    assert done.count(True) == 1
    assert JobPlans(layout).newest() in (one, other)
    assert [path.name for path in layout.plans.iterdir()] == ["2.json"]


def test_a_plan_that_is_missing_or_another_one_is_an_error(layout):
    plans = JobPlans(layout)
    plans.add(numbered(2))
    plans.add(numbered(3))
    layout.plan_of(2).write_bytes(plan_codec.dump(numbered(4)))
    with pytest.raises(CheckpointError, match="has plan 4, expected 2"):
        plans.read(2)
    layout.plan_of(2).unlink()
    with pytest.raises(CheckpointError, match=r"no plans/2\.json"):
        plans.read(2)


def test_tables_of_all_plans_are_the_job_s(layout):
    items = replace(USERS, name="items")
    plans = JobPlans(layout)
    plans.add(replace(numbered(2), dimensions=(items,)))
    plans.add(replace(numbered(3), dimensions=(replace(items, max_staleness_ms=1),)))
    assert plans.dimensions() == (USERS, replace(items, max_staleness_ms=1))


def test_secrets_of_all_plans_are_known(layout):
    source = replace(USERS.source, password="${secret:other}")
    JobPlans(layout).add(replace(numbered(2), dimensions=(replace(USERS, source=source),)))
    texts = [path.read_text() for path in layout.plan_files()]
    assert {name for text in texts for name in references(text)} == {"shop", "other"}


@pytest.mark.parametrize(
    ("pinned", "committed", "expected"),
    [
        (None, None, 3),  # no batch yet
        ((5, 1), None, 1),  # nothing says that it is committed
        ((5, 1), 4, 1),
        ((5, 1), 5, 3),
        ((5, 2), 4, 2),  # a plan between the two
        ((5, 3), 4, 3),
        ((5, 3), 5, 3),
    ],
)
def test_a_start_takes_the_newest_plan_unless_a_batch_of_another_is_unfinished(
    layout, pinned, committed, expected
):
    for number in (2, 3):
        JobPlans(layout).add(numbered(number))
    checkpoint = Checkpoint(layout.checkpoint)
    if pinned is not None:
        batch, plan = pinned
        PinStore(checkpoint.pins_directory).create(replace(PIN, batch=batch, plan=plan))
    if committed is not None:
        write_json_atomically(checkpoint.progress_file, {"batch": committed})
    assert JobPlans(layout).to_run().number == expected


# What runners load
# --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize("program", ["runner", "inspect.__main__"])
def test_what_reads_plans_beside_the_control_plane_loads_no_job_store(program):
    """It would take each runner 50 MiB."""
    code = f"import sys, service.jobs.{program}; print('sqlalchemy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "False\n", done.stderr
