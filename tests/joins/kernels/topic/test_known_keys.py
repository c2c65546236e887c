"""Keys that were met: each counts once, also where keys share a hash or do not fit into memory."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.index.hash_table import hash_rows
from joins.kernels.topic.keys import KnownKeys, key_hashes
from tests.support.laws import examples

_WORD = 2**64
_GOLDEN, _MIX_1, _MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def mix(value: int) -> int:
    value = (value + _GOLDEN) % _WORD
    value = (value ^ (value >> 30)) * _MIX_1 % _WORD
    value = (value ^ (value >> 27)) * _MIX_2 % _WORD
    return value ^ (value >> 31)


def unmix(value: int) -> int:
    value = unshift(value, 31) * pow(_MIX_2, -1, _WORD) % _WORD
    value = unshift(value, 27) * pow(_MIX_1, -1, _WORD) % _WORD
    return (unshift(value, 30) - _GOLDEN) % _WORD


def unshift(value: int, by: int) -> int:
    result = value
    for _ in range(3):
        result = value ^ (result >> by)
    return result


def signed(value: int) -> int:
    return value - _WORD if value >= _WORD // 2 else value


NUMBER = st.integers(-(2**63), 2**63 - 1)


def sharing(a: int, b: int, other: int) -> int:
    """With `other` first, the second column of a key that shares the 64-bit hash of (a, b)."""
    total, mixed = mix(mix(a % _WORD)), mix(mix(other % _WORD))
    return signed(unmix(total ^ mix(b % _WORD) ^ mixed))


def columns(keys):
    return [pa.array([key[at] for key in keys], pa.int64()) for at in range(2)]


@settings(max_examples=examples(200))
@given(a=NUMBER, b=NUMBER, other=NUMBER)
def test_keys_that_share_a_hash_are_two(tmp_path_factory, a, b, other):
    keys = [(a, b), (other, sharing(a, b, other))]
    assert len(set(hash_rows(columns(keys)).tolist())) == 1, "they share the first hash"
    known = KnownKeys(tmp_path_factory.getbasetemp())
    known.add(key_hashes(columns(keys)), np.zeros(2, np.int32))
    known.add(key_hashes(columns(keys[::-1])), np.zeros(2, np.int32))
    assert len(known) == len(set(keys))


@settings(max_examples=examples(200))
@given(data=st.data())
def test_each_key_has_the_number_that_it_came_with_first_also_in_another_process(
    tmp_path_factory, data
):
    """Keys are drawn from few, half of which share the hash of another; runs are in files."""
    seeds = data.draw(st.lists(st.tuples(NUMBER, NUMBER, NUMBER), min_size=1, max_size=20))
    pool = [key for a, b, other in seeds for key in ((a, b), (other, sharing(a, b, other)))]
    directory, limit = tmp_path_factory.getbasetemp(), data.draw(st.sampled_from([0, 4, 1 << 20]))
    known, expected, kept = KnownKeys(directory, limit), {}, []
    for _ in range(data.draw(st.integers(0, 12))):
        keys = data.draw(st.lists(st.sampled_from(pool), max_size=20))
        number = data.draw(st.integers(0, 3))
        if not keys:
            continue
        found, new = known.add(key_hashes(columns(keys)), np.full(len(keys), number, np.int32))
        for key in keys:
            expected.setdefault(key, number)
        assert found.tolist() == [expected[key] for key in keys]
        assert len(known) == len(expected)
        kept.append(new)
        if data.draw(st.booleans()):
            known = KnownKeys(directory, limit)
            for part in kept:
                known.load(part)


def test_large_runs_are_mapped_and_leave_no_file(tmp_path):
    known = KnownKeys(tmp_path, in_memory=10_000)
    for first in range(0, 1_000_000, 50_000):
        keys = [pa.array(np.arange(first, first + 50_000))]
        known.add(key_hashes(keys), np.zeros(50_000, np.int32))
    assert len(known) == 1_000_000
    large = [run for run in known._runs.all if len(run) > 50_000]
    assert large
    assert all(isinstance(run.hashes, np.memmap) for run in large)
    again = [pa.array(np.arange(0, 1_000_000, 3))]
    known.add(key_hashes(again), np.zeros(len(again[0]), np.int32))
    assert len(known) == 1_000_000
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=examples(100))
@given(texts=st.lists(st.text(max_size=300), min_size=1, max_size=20, unique=True))
def test_the_two_hashes_of_a_text_are_of_different_seeds(texts):
    one, other = key_hashes([pa.array(texts, pa.string())])
    assert len(set(zip(one.tolist(), other.tolist(), strict=True))) == len(texts)
    assert not set(one.tolist()) & set(other.tolist())
