"""What Spark's logs of offsets say, which versions with streaming queries have left."""

import pytest

from joins.durable.spark_logs import spark_offsets
from joins.plan.errors import CheckpointError

LOG = """v1
{"batchWatermarkMs":0,"batchTimestampMs":1700000000123,"conf":{"a":"b"}}
{"clicks":{"1":3,"0":12}}"""
BROKEN_LOGS = {
    "empty": "",
    "cut_after_the_version": "v1",
    "cut_after_the_metadata": "\n".join(LOG.splitlines()[:2]),
    "other_version": LOG.replace("v1", "v2"),
    "second_source": LOG + "\n{}",
    "cut_in_the_offsets": LOG[:-3],
    "offsets_are_no_object": LOG.replace('{"1":3,"0":12}', "7"),
}


def write_log(query, batch, text):
    (query / "offsets").mkdir(exist_ok=True)
    (query / "offsets" / str(batch)).write_text(text)


def test_the_log_tells_where_a_batch_has_ended(tmp_path):
    assert spark_offsets(tmp_path, 4) == {}
    write_log(tmp_path, 4, LOG)
    assert spark_offsets(tmp_path, 4) == {0: 12, 1: 3}
    assert spark_offsets(tmp_path, 5) == {}, "a batch of a loop of ours"


@pytest.mark.parametrize("text", BROKEN_LOGS.values(), ids=BROKEN_LOGS)
def test_a_log_of_another_form_is_refused(tmp_path, text):
    write_log(tmp_path, 4, text)
    with pytest.raises(CheckpointError, match="offsets/4"):
        spark_offsets(tmp_path, 4)
