"""Texts of times by Java's patterns, and times of such texts."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.kernels.calendar.java_patterns import (
    Dialect,
    PatternError,
    TextError,
    items_of,
    read,
    shown,
)
from joins.kernels.calendar.text_times import TEXT_TIMES
from joins.kernels.expressions.casts import Checked
from joins.kernels.expressions.operation import Operation
from joins.plan.types import SqlType, TypeName
from tests.support.expressions import arrays, evaluated, planned

FORMATTER, SIMPLE = Dialect.FORMATTER, Dialect.SIMPLE
TIME = 1_709_211_845_678_901  # 2024-02-29 13:04:05.678901, a Thursday
SHOWN = {
    "yyyy-MM-dd'T'HH:mm:ss.SSSSSS": ("2024-02-29T13:04:05.678901",) * 2,
    "yy M d H h a": ("24 2 29 13 1 PM",) * 2,
    "EEE, dd MMM yyyy": ("Thu, 29 Feb 2024",) * 2,
    "EEEE MMMM D": ("Thursday February 60",) * 2,
    "SS": ("67", "678"),
    "k K": ("13 1",) * 2,
    "'o''clock'": ("o'clock",) * 2,
}


@pytest.mark.parametrize(("pattern", "texts"), SHOWN.items(), ids=SHOWN)
def test_a_time_is_shown_by_a_pattern(pattern, texts):
    if "SSSSSS" in pattern:
        texts = (texts[0], texts[1].replace("678901", "000678"))
    assert shown(TIME, 234, pattern, FORMATTER) == texts[0]
    assert shown(TIME, 234, pattern, SIMPLE) == texts[1]


SECOND = 10**9
READ = {
    "fixed_widths": ("20240229130405", "yyyyMMddHHmmss", FORMATTER, 1_709_211_845),
    "a_day_that_is_not_there_is_the_last": ("2023-02-31", "yyyy-MM-dd", FORMATTER, 1_677_542_400),
    "half_days": ("01 PM", "hh a", FORMATTER, 46_800),
    "the_end_of_a_day": ("2024-02-29 24:00", "yyyy-MM-dd HH:mm", FORMATTER, 1_709_251_200),
    "the_end_of_no_date": ("24:00", "HH:mm", FORMATTER, 0),
    "the_day_of_the_week": ("Thu 2024-02-29", "EEE yyyy-MM-dd", FORMATTER, 1_709_164_800),
    "names": ("29 Feb 2024", "dd MMM yyyy", FORMATTER, 1_709_164_800),
    "day_of_the_year": ("2024-060", "yyyy-DDD", FORMATTER, 1_709_164_800),
    "fields_run_over": ("2023-13-01", "yyyy-MM-dd", SIMPLE, 1_704_067_200),
    "the_rest_is_left": ("2024-02-29 and more", "yyyy-MM-dd", SIMPLE, 1_709_164_800),
}


@pytest.mark.parametrize(("text", "pattern", "dialect", "seconds"), READ.values(), ids=READ)
def test_a_text_is_read_by_a_pattern(text, pattern, dialect, seconds):
    assert read(text, pattern, dialect) == (seconds * SECOND, None)


def test_an_offset_is_read_with_the_time():
    assert read("2024-02-29 +0130", "yyyy-MM-dd Z", SIMPLE)[1] == 90
    assert read("2024-02-29Z", "yyyy-MM-ddX", SIMPLE)[1] == 0


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("24-2-9", "yyyy-MM-dd"),
        ("2024-13-01", "yyyy-MM-dd"),
        ("25", "HH"),
        ("x", "d"),
        ("0", "h"),
        ("24:01", "HH:mm"),
        ("Mon 2024-02-29", "EEE yyyy-MM-dd"),
    ],
)
def test_a_text_that_is_no_time_is_told(text, pattern):
    with pytest.raises(TextError):
        read(text, pattern, FORMATTER)


@pytest.mark.parametrize("pattern", ["YYYY", "G", "yyyy 'open", "b", "ddd", "[yyyy]", "VV"])
def test_a_pattern_with_other_letters_is_told(pattern):
    with pytest.raises(PatternError):
        items_of(pattern, FORMATTER)


TIMES = {
    "the_last_month": ("9999-12-31", "9999-12-31 00:00:00.000"),
    "the_last_second": ("9999-12-31 23:59:59", "9999-12-31 23:59:59.000"),
    "the_last_of_a_month": ("2023-02-31 1:02:03", "2023-02-28 01:02:03.000"),
    "the_end_of_a_day": ("2024-12-31 24:00:00.000", "2025-01-01 00:00:00.000"),
    "behind_the_end": ("2024-12-31 24:00:01", None),
    "no_day": ("2024-12-32", None),
    "no_month": ("2024-13-01", None),
    "no_year": ("0000-01-01", None),
}


@pytest.mark.parametrize(("text", "expected"), TIMES.values(), ids=TIMES)
def test_a_usual_time_is_the_same_beside_any_other(text, expected):
    """Arrow reads columns of plain texts; one that is none changes who reads the others."""
    types = {"t": "STRING"}
    for rows in ([[text]], [[text], ["x"]]):
        answer = evaluated(planned("CAST(TO_TIMESTAMP(t) AS STRING)", types), arrays(types, rows))
        assert answer.errors == {}
        assert answer.values.to_pylist()[0] == expected


YEAR_MICROS = 31_556_952_000_000
MOMENTS = st.integers(-2_200 * YEAR_MICROS, 8_200 * YEAR_MICROS) | st.none()
LETTERS = st.sampled_from(["yyyy", "MM", "dd", "HH", "mm", "ss", "S", "SSS", "'T'", "''", "%", " "])


@given(st.lists(MOMENTS, min_size=1, max_size=4), st.lists(LETTERS, max_size=4).map("".join))
def test_a_column_of_times_is_shown_as_each_of_them(moments, pattern):
    """By Arrow or not: NULL is NULL, and a year that Java would show in another way is refused."""
    column = pa.array(moments, pa.int64()).cast(pa.timestamp("us"))
    types = (SqlType(TypeName.TIMESTAMP, 6), SqlType(TypeName.STRING))
    call = Operation((column, pa.scalar(pattern)), types, types[1], len(moments))
    result = TEXT_TIMES["DATE_FORMAT"](call)
    texts = (result.values if isinstance(result, Checked) else result).to_pylist()
    expected = []
    for micros in moments:
        try:
            expected.append(micros if micros is None else shown(micros, 0, pattern, FORMATTER))
        except (ArithmeticError, ValueError):
            expected.append(None)
    assert texts == expected
