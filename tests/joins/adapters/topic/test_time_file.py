"""The times of keys outlive their process, and a file of many changes is followed by another."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.adapters.topic.appended_file import AppendedFile, TimeFile
from joins.kernels.topic.keys import GONE
from joins.plan.errors import CheckpointError
from tests.support.laws import examples

CHANGES = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 9)), max_size=6)
STEPS = st.lists(st.tuples(CHANGES, st.sampled_from(["save", "keep", "die"])), max_size=20)


def take(file, changes):
    """The first hash is shared by each two keys."""
    keys, times = (np.array(each) for each in zip(*changes, strict=True))
    hashes = (keys // 2).astype(np.uint64), keys.astype(np.uint64)
    return file.take(hashes, times.astype(np.int64)).tolist()


@given(steps=STEPS, spare=st.sampled_from([0, 3, 1_000]))
@settings(max_examples=examples(150))
def test_what_was_kept_is_there_again(tmp_path_factory, steps, spare):
    """`keep` is a save whose answer is kept elsewhere; a process may die behind any step."""
    path = tmp_path_factory.mktemp("times") / "source.times"
    kept, kept_model = (0, 0), {}
    file, model = TimeFile(path, kept, spare), {}
    for changes, end in steps:
        for key, time in changes:
            assert take(file, [(key, time)]) == [model.get(key, GONE)]
            model[key] = time
        if end == "keep":
            kept, kept_model = file.save(), dict(model)
        else:
            if end == "save":
                file.save()  # the process dies before it keeps the answer
            file, model = TimeFile(path, kept, spare), dict(kept_model)
    assert len(list(path.parent.iterdir())) <= 2


def test_a_file_has_no_more_entries_than_its_keys_need(tmp_path):
    path = tmp_path / "source.times"
    file, kept = TimeFile(path, (0, 0), spare=10), (0, 0)
    for time in range(100):
        take(file, [(1, time), (2, time)])
        kept = file.save()
    assert kept[0] > 1
    assert kept[1] <= 14
    assert len(list(path.parent.iterdir())) <= 2
    again = TimeFile(path, kept, spare=10)
    assert take(again, [(1, 0), (2, 0), (3, 0)]) == [99, 99, GONE]


@pytest.mark.parametrize("content", [None, b"", b"12"], ids=["missing", "empty", "cut"])
def test_a_file_that_lacks_entries_is_said_to(tmp_path, content):
    file = AppendedFile(tmp_path / "values", 1, kept=3)
    if content is not None:
        file.path.write_bytes(content)
    for read in (file.load, lambda: file.at(0, 3)):
        with pytest.raises(CheckpointError, match="fewer than 3 entries"):
            read()
