"""The transitions of a job on a disk that refuses, and after a writer that was killed."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.durable.checkpoint import json_lines
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import append_event, read_changes
from tests.support.disk import largest_file
from tests.support.laws import examples


def event(number: int) -> dict[str, object]:
    states = ("STARTING", "SNAPSHOT", "JOINING", "STALLED")
    return {"at_ms": number, "from": "STARTING", "to": states[number % 4], "cause": "x" * number}


def told(job_dir) -> list[int]:
    changes, _ = read_changes(job_dir, 0)
    return [change.at_ms for change in changes]


@settings(max_examples=examples(200))
@given(before=st.integers(0, 3), cut=st.integers(0, 100))
def test_an_event_is_there_as_a_whole_or_not_at_all(tmp_path_factory, before, cut):
    job_dir = tmp_path_factory.mktemp("job")
    for number in range(1, before + 1):
        append_event(job_dir, event(number))
    file = JobLayout(job_dir).events
    content = file.read_bytes() if before else b""
    length = len(json.dumps({"format_version": 1, **event(50)}, separators=(",", ":"))) + 1
    with (
        largest_file(len(content) + min(cut, length - 1)),
        pytest.raises(OSError, match="File too"),
    ):
        append_event(job_dir, event(50))
    assert file.read_bytes() == content
    append_event(job_dir, event(51))
    numbers = [json.loads(line)["at_ms"] for line in json_lines(file.read_bytes())]
    assert numbers == [*range(1, before + 1), 51]


@settings(max_examples=examples(200))
@given(left=st.integers(1, 60))
def test_what_a_killed_writer_has_left_of_an_event_costs_no_other(tmp_path_factory, left):
    job_dir = tmp_path_factory.mktemp("job")
    append_event(job_dir, event(2))
    file = JobLayout(job_dir).events
    whole = file.read_bytes()
    with file.open("ab") as opened:
        opened.write(whole[:left])
    append_event(job_dir, event(3))
    assert told(job_dir)[-1] == 3
    assert len(told(job_dir)) == 2 + (left == len(whole) - 1)
