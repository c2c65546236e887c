"""Which kinds of upkeep may not run beside each other, whatever the tables are called."""

from dataclasses import replace

import pytest

from joins.dimension.build_side import BuildTask
from joins.dimension.dimension import DimensionPlaces, DimensionRuntime
from joins.dimension.maintenance import UpkeepSettings
from joins.job.upkeep import JobLogs, Maintenance
from joins.plan.plan import KafkaOptions
from tests.support.changelog import COLUMNS
from tests.support.probe import USERS
from tests.support.topics import changelog_topic


@pytest.mark.parametrize("name", ["users", "current", "current_users", "x current", "fold x"])
def test_only_the_upkeep_of_the_folded_table_waits_for_its_fold(tmp_path, name):
    tables = (tmp_path / each for each in ("changelog", "current", "index"))
    places = DimensionPlaces("t", 1, *tables, (), tmp_path / "spark")
    runtime = DimensionRuntime(
        replace(USERS, name=name),
        places,
        BuildTask("t", tmp_path / "changelog", COLUMNS, 1),
        app_id="app",
        on_watermark=lambda *_: None,
        topic=changelog_topic(KafkaOptions("", "t"), 1, tmp_path / "topic.json"),
    )
    maintenance = Maintenance([runtime], JobLogs(), 1, UpkeepSettings())
    steps = {step.part: step.not_beside for step in maintenance.steps({})}
    assert steps == {
        f'cleaning up the changes of table "{name}"': (),
        f'cleaning up the merged rows of table "{name}"': (
            f'merging the changes of table "{name}"',
        ),
    }
