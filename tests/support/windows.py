"""Windows by the kernels, batch by batch, and by the operator that says what is right."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from joins.kernels.changelog.row_kinds import SIGNS
from joins.kernels.probe.arrival_files import EVENT_TIME, RECORD
from joins.kernels.windows.firing import Fired, fire, reads
from joins.kernels.windows.partials import partials
from joins.kernels.windows.spec import WindowAggregate, WindowKey, WindowSpec
from joins.kernels.windows.state import WatermarkAdvance, compact
from joins.plan.plan import AggregateKind, WindowKind
from joins.plan.types import SqlType, TypeName, arrow_type
from watermark.model import MAX_TIMESTAMP, MIN_TIMESTAMP
from watermark.reference.testing import OperatorHarness
from watermark.reference.timers import OutputTag, Record, SideRecord
from watermark.reference.windows import CumulativeWindows, SessionWindows, SlidingWindows, Stream

BIGINT = SqlType(TypeName.BIGINT)
STRING = SqlType(TypeName.STRING)
TIMESTAMP_3 = SqlType(TypeName.TIMESTAMP, 3)
ENDLESS = MAX_TIMESTAMP
LATE = OutputTag("late")


def aggregate(at, function, kind=None, type_=BIGINT, **options):
    """The aggregate at the place `at`, of arguments of type `kind`."""
    argument = None if kind is None else f"arg_{at}"
    where = f"where_{at}" if options.pop("where", False) else None
    distinct, separator = options.pop("distinct", False), options.pop("separator", ",")
    assert not options
    return WindowAggregate(f"a{at}", function, argument, kind, where, distinct, separator, type_)


COUNTED = (
    aggregate(0, AggregateKind.COUNT_ALL),
    aggregate(1, AggregateKind.SUM, BIGINT),
    aggregate(2, AggregateKind.LISTAGG, STRING, STRING),
)


def window_spec(kind, size_ms, *, slide_ms=None, offset_ms=0, lateness_ms=0, **options):
    options = {"buckets": 1, "retracts": True, "output": (), "having": None, **options}
    return WindowSpec(
        kind=kind,
        size_ms=size_ms,
        slide_ms=slide_ms or size_ms,
        offset_ms=offset_ms,
        lateness_ms=lateness_ms,
        time_type=TIMESTAMP_3,
        keys=options.pop("keys", (WindowKey("k", STRING),)),
        aggregates=options.pop("aggregates", COUNTED),
        **options,
    )


def input_rows(spec, rows):
    """A batch of `(key, arguments, time, watermark, partition, offset)`."""
    fields = [(f"key_{at}", arrow_type(key.type)) for at, key in enumerate(spec.keys)]
    for item in spec.aggregates:
        if item.argument is not None:
            fields.append((item.argument, arrow_type(item.argument_type)))
        if item.where is not None:
            fields.append((item.where, pa.bool_()))
    fields += [*RECORD, *EVENT_TIME]
    schema = pa.schema(fields)
    lines = [
        (*key, *arguments, partition, offset, None, str(offset).encode(), time, watermark)
        for key, arguments, time, watermark, partition, offset in rows
    ]
    columns = list(zip(*lines, strict=True)) if lines else [[] for _ in schema]
    arrays = [pa.array(c, item.type) for c, item in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


@dataclass
class KernelWindows:
    """The buckets' state as the loop keeps it: tables in order, read by their greatest `_due`."""

    spec: WindowSpec
    watermark_ms: int = MIN_TIMESTAMP
    offset: int = 0
    state: dict[int, list[pa.Table]] = field(default_factory=dict)
    pending: list = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    now_ms: int = MIN_TIMESTAMP
    fired: list = field(default_factory=list)
    late: list = field(default_factory=list)
    read_tables: int = 0
    on_fired: Callable[[Fired], object] = lambda each: None

    def __post_init__(self):
        self.now_ms = self.watermark_ms

    def row(self, key, arguments, time):
        self.pending.append((key, arguments, time, self.now_ms))

    def watermark(self, watermark_ms):
        if watermark_ms > self.now_ms:
            self.now_ms = watermark_ms
            self.steps.append(watermark_ms)

    def end_batch(self, pieces=1):
        """The batch's rows, read by `pieces` tasks, one a partition."""
        size = -(-len(self.pending) // pieces) or 1
        parts = []
        for partition, start in enumerate(range(0, len(self.pending), size)):
            rows = [
                (*row, partition, self.offset + start + at)
                for at, row in enumerate(self.pending[start : start + size])
            ]
            found = partials(self.spec, input_rows(self.spec, rows))
            parts.append(found.table)
            self.late += [int(value) for value in found.late.column("_value").to_pylist()]
        advance = WatermarkAdvance.of(self.watermark_ms, self.now_ms, self.steps)
        for bucket in range(self.spec.buckets):
            self._fire(bucket, [p.filter(pc.equal(p["_bucket"], bucket)) for p in parts], advance)
        self.offset += len(self.pending)
        self.watermark_ms, self.pending, self.steps = self.now_ms, [], []

    def _fire(self, bucket, parts, advance):
        tables = self.state.get(bucket, [])
        wanted = reads(self.spec, parts, advance)
        read = []
        for table in tables:
            due = pc.min_max(table["_due"]).as_py()
            if wanted and due["min"] <= wanted[1] and due["max"] >= wanted[0]:
                read.append(table)
        self.read_tables += len(read)
        fired = fire(self.spec, read, parts, advance)
        self.on_fired(fired)
        self.late += [int(value) for value in fired.late.column("_value").to_pylist()]
        for row, kind, watermark_ms in zip(
            fired.rows.to_pylist(),
            fired.kinds.to_pylist(),
            fired.watermarks.to_pylist(),
            strict=True,
        ):
            self.fired.append((SIGNS[kind], row, watermark_ms))
        if fired.replaces_state:
            tables = [table for table in tables if table not in read]
        tables = [*tables, fired.state] if fired.state.num_rows else tables
        after = advance.after_ms
        self.state[bucket] = [t for t in tables if pc.max(t["_keep"]).as_py() > after]

    def compact(self):
        for bucket, tables in self.state.items():
            if tables and not self.spec.merges:
                self.state[bucket] = [compact(self.spec, tables, self.watermark_ms)]

    def changes(self):
        return [
            (
                sign,
                row["k"],
                millis(row["window_start"]),
                millis(row["window_end"]),
                row["a0"],
                row["a1"],
                row.get("a2"),
                watermark_ms,
            )
            for sign, row, watermark_ms in self.fired
        ]


def millis(instant):
    return int(pc.cast(pa.scalar(instant, pa.timestamp("us")), pa.int64()).as_py() // 1000)


class OperatorWindows:
    """The same through the operator, with the kind that each result has for those before it."""

    def __init__(self, spec):
        if spec.kind is WindowKind.SESSION:
            assigner = SessionWindows(spec.size_ms)
        elif spec.kind is WindowKind.CUMULATE:
            assigner = CumulativeWindows(spec.size_ms, spec.slide_ms, spec.offset_ms)
        else:
            assigner = SlidingWindows(spec.size_ms, spec.slide_ms, spec.offset_ms)
        windowed = Stream().key_by(lambda value: value[0]).window(assigner)
        windowed = windowed.allowed_lateness(spec.lateness_ms).side_output_late_data(LATE)
        self.harness = OperatorHarness(lambda: windowed.process(_listed))
        self.spec = spec
        self.outstanding = {}
        self.changed = []
        self.late = []
        self.offset = 0

    @property
    def watermark_ms(self):
        return self.harness.operator.current_watermark_ms

    def row(self, key, value, time):
        before = self._sessions(key)
        caused = self.harness.row((key, value, self.offset), time)
        for gone in sorted(each for each in before if each not in self._sessions(key)):
            old = self.outstanding.pop((key, *gone), None)
            if old is not None:
                self.changed.append(("-D", *old, self.watermark_ms))
        self._take(caused, self.watermark_ms)
        self.offset += 1

    def watermark(self, watermark_ms):
        before_ms = self.watermark_ms
        self._take(self.harness.watermark(watermark_ms), before_ms)

    def _take(self, caused, watermark_ms):
        for each in caused:
            if isinstance(each, SideRecord):
                self.late.append(each.record.value[2])
            elif isinstance(each, Record):
                key, start, end, values = each.value
                listed = ",".join(map(str, values)) if self.spec.lists_rows else None
                row = (key, start, end, len(values), sum(values), listed)
                old = self.outstanding.get((key, start, end))
                if old is not None and self.spec.retracts:
                    self.changed.append(("-U", *old, watermark_ms))
                self.changed.append(("+I" if old is None else "+U", *row, watermark_ms))
                self.outstanding[key, start, end] = row

    def _sessions(self, key):
        if not self.spec.merges:
            return []
        sessions = dict(self.harness.operator.snapshot()["own"]["sessions"])
        return sessions.get(key, [])


def _listed(context, values):
    window = context.window
    return [(context.key, window.start_ms, window.end_ms, tuple(value[1] for value in values))]


def by_key(changes):
    """Changes of each key, in order."""
    found = {}
    for change in changes:
        found.setdefault(change[1], []).append(change)
    return found
