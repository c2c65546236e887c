"""What sinks make of the changes of windows: a table with one row a window, as it is in the end.

Whatever comes late, merges sessions, fails or is kept back by HAVING: who applies the changes has
the results of the operator of `watermark.reference.windows` that pass, and is never told to take
back what it does not have.
"""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.kernels.changelog.row_kinds import SIGNS
from joins.kernels.windows.firing import project
from joins.plan.plan import WINDOW, OutputColumn, WindowKind
from joins.plan.types import Call, Column, Constant, SqlType, TypeName
from tests.joins.kernels.windows.test_windows import play, steps
from tests.support.laws import examples
from tests.support.windows import BIGINT, STRING, TIMESTAMP_3, window_spec

BOOLEAN = SqlType(TypeName.BOOLEAN)
COUNT = Column(WINDOW, "a0", BIGINT)


def number(value):
    return Constant(str(value), BIGINT)


PART = Call("/", (number(60), Call("%", (COUNT, number(2)), BIGINT)), BIGINT)
OUTPUT = (
    OutputColumn("k", Column(WINDOW, "k", STRING)),
    OutputColumn("s", Column(WINDOW, "window_start", TIMESTAMP_3)),
    OutputColumn("e", Column(WINDOW, "window_end", TIMESTAMP_3)),
    OutputColumn("n", COUNT),
)
WITH_PART = (*OUTPUT, OutputColumn("x", PART))  # of an even number of rows it fails
SEVERAL = Call("NOT", (Call("<=", (COUNT, number(1)), BOOLEAN),), BOOLEAN)
# Most rows come late and within the lateness, so that windows fire again and again.
WINDOWS = st.builds(
    window_spec,
    st.sampled_from([WindowKind.TUMBLE, WindowKind.HOP, WindowKind.SESSION]),
    st.integers(3, 6),
    lateness_ms=st.integers(8, 20),
    retracts=st.booleans(),
)
QUERIES = st.tuples(st.sampled_from([OUTPUT, WITH_PART]), st.sampled_from([None, SEVERAL]))


class Table:
    """A sink that has one row a window."""

    def __init__(self, spec):
        self._spec = spec
        self.rows = {}

    def take(self, fired):
        found = project(self._spec, fired, 0)
        for kind, row in zip(found.kinds.to_pylist(), found.rows.to_pylist(), strict=True):
            self._apply(SIGNS[kind], (row["k"], row["s"], row["e"]), row["n"])

    def _apply(self, sign, window, n):
        if sign in {"-U", "-D"}:
            assert self.rows.pop(window) == n, "what is taken back is what was there"
            return
        assert not (self._spec.retracts and window in self.rows), "the old row goes first"
        self.rows[window] = n


@settings(max_examples=examples(40))
@given(
    spec=WINDOWS,
    query=QUERIES,
    arrived=steps(["a", None], 8, 3),
    per_batch=st.booleans(),
)
def test_who_applies_the_changes_has_the_results_that_pass(spec, query, arrived, per_batch):
    output, having = query
    slide_ms = 2 if spec.kind is WindowKind.HOP else spec.size_ms
    spec = replace(spec, output=output, having=having, slide_ms=slide_ms)
    table = Table(spec)
    _, operator = play(spec, arrived, per_batch=per_batch, on_fired=table.take)
    counts = [row[3] for row in operator.outstanding.values()]
    passing = [n for n in counts if (having is None or n > 1) and (output is OUTPUT or n % 2 == 1)]
    assert sorted(table.rows.values()) == sorted(passing)
