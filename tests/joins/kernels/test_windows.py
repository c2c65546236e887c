"""Window kernels: what the operator of `watermark.windows` gives, whatever the cut into batches."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.plan import WindowKind
from tests.support.windows import ENDLESS, KernelWindows, OperatorWindows, by_key, window_spec

START = -40
STEPS = st.lists(
    st.one_of(
        *[st.tuples(st.just("row"), st.sampled_from("abc"), st.integers(-25, 30))] * 5,
        *[st.tuples(st.just("watermark"), st.integers(0, 12))] * 2,
        st.tuples(st.just("batch"), st.integers(1, 3)),
        st.tuples(st.just("compact")),
    ),
    min_size=8,
    max_size=50,
)
LATENESS = st.sampled_from([0, 0, 3, 15])
FIXED = st.one_of(
    st.builds(
        lambda size, offset, lateness: window_spec(
            WindowKind.TUMBLE, size, offset_ms=offset % size, lateness_ms=lateness
        ),
        st.integers(1, 25),
        st.integers(0, 24),
        LATENESS,
    ),
    st.builds(
        lambda size, slide, offset, lateness: window_spec(
            WindowKind.HOP, size, slide_ms=slide, offset_ms=offset % slide, lateness_ms=lateness
        ),
        st.integers(1, 20),
        st.integers(1, 25),
        st.integers(0, 24),
        LATENESS,
    ),
)


def play(spec, steps, *, per_batch):
    """The steps in both; with emission per batch each watermark ends a batch."""
    kernels, operator = KernelWindows(spec), OperatorWindows(spec)
    for number, (step, *arguments) in enumerate(steps):
        if step == "row":
            key, delta = arguments
            time = max(operator.watermark_ms, START) + delta
            kernels.row((key,), (number, str(number)), time)
            operator.row(key, number, time)
        elif step == "watermark":
            watermark_ms = max(operator.watermark_ms, START) + arguments[0]
            kernels.watermark(watermark_ms)
            operator.watermark(watermark_ms)
            if per_batch:
                kernels.end_batch()
        elif step == "batch":
            kernels.end_batch(*arguments)
        else:
            kernels.compact()
    kernels.watermark(ENDLESS)
    operator.watermark(ENDLESS)
    kernels.end_batch()
    return kernels, operator


@settings(max_examples=60, deadline=None)
@given(spec=FIXED, steps=STEPS, per_batch=st.booleans(), buckets=st.integers(1, 3))
def test_fixed_windows_give_what_the_operator_gives(spec, steps, per_batch, buckets):
    kernels, operator = play(replace(spec, buckets=buckets), steps, per_batch=per_batch)
    assert by_key(kernels.changes()) == by_key(operator.changed)
    assert kernels.late == operator.late
    assert not any(kernels.state.values())
