"""Times whose lengths tell their form are read as the patterns would read them."""

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from joins.kernels.expressions import casts
from joins.kernels.expressions.casts import from_text

PARTS = st.sampled_from(
    [
        "2024",
        "0001",
        "-",
        "/",
        "01",
        "02",
        "12",
        "13",
        "30",
        " ",
        "T",
        ":",
        ".",
        "5",
        "123456",
        "Z",
        "+01",
    ]
)
USUAL = st.datetimes().map(str)
NEAR = st.one_of(
    USUAL,
    USUAL.map(lambda text: text[:19]),
    USUAL.map(lambda text: text[:23]),
    USUAL.map(lambda text: f"{text[:19]}Z"),
    USUAL.map(lambda text: text.replace(" ", "T")),
    st.lists(PARTS, max_size=9).map("".join),
    st.text(alphabet="0123456789-: TZ.+", min_size=19, max_size=27),
)
TYPES = st.sampled_from([pa.timestamp(u, z) for u in ("s", "ms", "us") for z in (None, "UTC")])
COLUMNS = st.lists(st.one_of(st.none(), NEAR), min_size=1, max_size=4)


@given(texts=COLUMNS, kind=TYPES)
@example(["2024-01-01 10:20+01"], pa.timestamp("us"))
@example(["2024-01-01 10:20:30+0100"], pa.timestamp("us", "UTC"))
@example(["2024-02-30 10:20:30"], pa.timestamp("us"))
@example([None, "2024-01-01T10:20:30.123"], pa.timestamp("s"))
def test_a_column_is_read_as_its_values_are_by_the_patterns(texts, kind):
    column = pa.array(texts, pa.string())
    quick, plain = from_text(column, kind), casts._plain_times
    try:
        casts._plain_times = lambda *_: None
        slow = from_text(column, kind)
    finally:
        casts._plain_times = plain
    assert quick.values.equals(slow.values)
    assert (quick.failed == slow.failed).all()
