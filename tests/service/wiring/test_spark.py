"""How many tasks of a runner stay."""

import pytest

from service.config import Settings
from service.wiring.spark import resident_tasks

SIZES = {
    "one_a_core": ("local[3,4]", {}, 3),
    "four_at_the_most": ("local[64,4]", {}, 4),
    "none_on_a_cluster": ("spark://one:7077", {}, 0),
    "as_many_as_the_operator_says": ("spark://one:7077", {"resident_tasks": 7}, 7),
    "none": ("local[3,4]", {"resident_tasks": 0}, 0),
}


@pytest.mark.parametrize(("master", "values", "expected"), SIZES.values(), ids=SIZES)
def test_the_number_of_resident_tasks_follows_the_master(master, values, expected, tmp_path):
    settings = Settings.load(data_dir=tmp_path, spark_master=master, **values)
    assert resident_tasks(settings) == expected
