"""Phases and batches of jobs as OpenTelemetry spans over OTLP.

A run is a trace; its spans are the states of the job. A batch is a separate trace, from its pin to
its commit, with a link to its run: an endless stream would otherwise make one trace of millions of
spans. Ids derive from the job and the run or batch, so a repeated export is the same span.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from uuid import UUID, uuid5

from service.client import NotFoundError, Sluice
from service.errors import ExportError
from service.export.follow import JobRun, Step
from service.schemas.inspection import BatchView
from service.version import program_version

try:
    from opentelemetry.context import Context
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
    from opentelemetry.sdk.trace.id_generator import IdGenerator
    from opentelemetry.trace import Link, SpanContext, StatusCode, TraceFlags
except ModuleNotFoundError as exc:
    raise ExportError(
        f'the package of "{exc.name}" is not installed',
        hint="Install the extra: pip install 'sluice[otel]'.",
        passing=False,
    ) from exc

_JOINING = "JOINING"
_MS = 1_000_000
_MOST_AT_ONCE = 512  # as OpenTelemetry's own processors; a collector refuses a larger request


@dataclass(frozen=True, slots=True)
class Past:
    """The values of a span; `run` is linked if the span is not in the run's trace."""

    name: str
    trace: UUID
    id: UUID
    begin_ms: int
    end_ms: int
    attributes: Mapping[str, str | int]
    run: UUID | None = None


class SpanSender:
    """Builds and sends spans of past states and batches."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self._ids = _KnownIds()
        self._ended = _Ended()
        resource = Resource.create({"service.name": "sluice", "service.version": program_version()})
        provider = TracerProvider(resource=resource, id_generator=self._ids)
        provider.add_span_processor(self._ended)
        self._tracer = provider.get_tracer("sluice", program_version())

    def add(self, past: Past, *, error: str | None = None) -> None:
        """Make one span, failed if there is an `error`; the next `send` sends it."""
        self._ids.next = (past.trace, past.id)
        links = [] if past.run is None else [Link(_context_of(past.run))]
        span = self._tracer.start_span(
            past.name,
            Context(),
            attributes=dict(past.attributes),
            links=links,
            start_time=past.begin_ms * _MS,
        )
        if error is not None:
            span.set_status(StatusCode.ERROR, error)
        span.end(max(past.begin_ms, past.end_ms) * _MS)

    def send(self) -> None:
        """Send the spans; after an ExportError the next call sends the rest of them."""
        while part := dict(islice(self._ended.spans.items(), _MOST_AT_ONCE)):
            if self._exporter.export(list(part.values())) is not SpanExportResult.SUCCESS:
                raise ExportError(
                    f"OpenTelemetry's collector has not taken {len(self._ended.spans)} spans",
                    hint="See that it runs at the address that was given and speaks OTLP over "
                    "HTTP.",
                    passing=True,
                )
            for span_id in part:
                del self._ended.spans[span_id]


class SpanExporterOfJobs:
    """Sends the states that jobs were in, and their batches, to a collector."""

    def __init__(self, client: Sluice, sender: SpanSender) -> None:
        self._client = client
        self._sender = sender
        self._last_batches: dict[str, int] = {}

    def tell(self, step: Step) -> None:
        run, transition = step.run, step.transition
        if not step.over and step.since_ms is not None and transition.origin is not None:
            failed = transition.target == "FAILED"
            attributes = {
                "sluice.job.id": run.job_id,
                "sluice.next_state": transition.target,
                "sluice.cause": transition.cause,
            }
            name = uuid5(run.id, f"transition {transition.sequence}")
            times = (step.since_ms, transition.at_ms)
            past = Past(transition.origin, run.id, name, *times, attributes)
            self._sender.add(past, error=transition.cause if failed else None)
        self._sender.send()

    def look(self, run_of: Callable[[str], JobRun | None]) -> None:
        """Send the batches committed since the last look; of a new job only the newest."""
        self._sender.send()  # while the collector takes nothing, no spans are added
        for job in self._client.jobs():
            run = run_of(job.id) if job.state == _JOINING else None
            if run is None:
                continue
            for batch in self._new_batches(job.id):
                self._add_batch(run, batch)
                self._last_batches[job.id] = batch.batch
        self._sender.send()

    def _new_batches(self, job_id: str) -> list[BatchView]:
        last = self._last_batches.get(job_id)
        batches: list[BatchView] = []
        try:
            for batch in self._client.job(job_id).batches(most=1 if last is None else None):
                if last is not None and batch.batch <= last:
                    break
                batches.append(batch)
        except NotFoundError:
            return []
        return list(_committed(reversed(batches)))

    def _add_batch(self, run: JobRun, batch: BatchView) -> None:
        name = uuid5(UUID(run.job_id), f"batch {batch.batch}")
        begin = int(batch.pin["batch_timestamp_ms"])
        attributes: dict[str, str | int] = {
            "sluice.job.id": run.job_id,
            "sluice.batch": batch.batch,
            "sluice.records": batch.records or 0,
            "sluice.epoch": int(batch.pin["epoch"]),
        }
        counts = {f"sluice.count.{n}": v for n, v in (batch.counts or {}).items()}
        attributes |= {name: value for name, value in counts.items() if isinstance(value, int)}
        for table, version in batch.pin["versions"].items():
            attributes[f"sluice.version.{table}"] = int(version)
        times = (begin, batch.committed_at_ms or begin)
        self._sender.add(Past("batch", name, uuid5(name, "span"), *times, attributes, run.id))


def open_collector(address: str | None) -> OTLPSpanExporter:
    if address is None:
        return OTLPSpanExporter()
    return OTLPSpanExporter(endpoint=f"{address.rstrip('/')}/v1/traces")


class _KnownIds(IdGenerator):
    """Gives the next span the ids stored here: its trace's and its own."""

    next: tuple[UUID, UUID]

    def generate_trace_id(self) -> int:
        return self.next[0].int

    def generate_span_id(self) -> int:
        return _span_id(self.next[1])


class _Ended(SpanProcessor):
    """Holds spans until they are sent; a span made again replaces the earlier one."""

    def __init__(self) -> None:
        self.spans: dict[int, ReadableSpan] = {}

    def on_end(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        assert context is not None, "a span that ended has a context"
        self.spans[context.span_id] = span


def _span_id(name: UUID) -> int:
    return name.int & (2**64 - 1) or 1


def _context_of(run: UUID) -> SpanContext:
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(run.int, _span_id(run), is_remote=True, trace_flags=flags)


def _committed(batches: Iterator[BatchView]) -> Iterator[BatchView]:
    for batch in batches:
        if not batch.committed or batch.committed_at_ms is None:
            return
        yield batch
