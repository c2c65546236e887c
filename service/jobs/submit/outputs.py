"""Names and outputs of jobs that can still run: a new job shares none of them by accident.

Two jobs that append to one output double its rows. Compared is what an address means: a Delta
table by its real path, or by server, bucket and key; a topic by the id of its cluster and its name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from joins.plan.plan import DeltaSink, JoinPlan, KafkaSink, PrintSink
from service.config import Settings
from service.errors import JobConflictError
from service.jobs.store import plan_codec
from service.jobs.store.job import DesiredState, JobState
from service.jobs.store.rows import StoredJob, StoredJobs
from service.jobs.submit.places import LATE, OUTPUT, address_of
from watermark.errors import SluiceError


@dataclass(frozen=True, slots=True)
class Output:
    """What a job writes to, as its plan has it.

    Attributes:
        role: `output` or `late records`.
    """

    role: str
    sink: DeltaSink | KafkaSink

    @property
    def text(self) -> str:
        if isinstance(self.sink, KafkaSink):
            return f'topic "{self.sink.kafka.topic}"'
        return f'delta table "{self.sink.path}"'


def outputs_of(plan: JoinPlan) -> tuple[Output, ...]:
    """The Delta tables and topics that a job writes to, each once."""
    sinks = (insert.sink for insert in plan.inserts)
    outputs = [Output(OUTPUT, sink) for sink in sinks if isinstance(sink, DeltaSink | KafkaSink)]
    if plan.probe.late_records is not None:
        outputs.append(Output(LATE, plan.probe.late_records))
    return tuple(dict.fromkeys(outputs))


def is_preview(plan: JoinPlan) -> bool:
    return isinstance(plan.sink, PrintSink) and plan.sink.row_limit is not None


class TakenOutputs:
    """Finds jobs of the store that have a new job's name, or write where it is to write."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._known: dict[str, tuple[Output, ...]] = {}

    def check(self, plan: JoinPlan, stored: StoredJobs, *, append: bool) -> tuple[str, ...]:
        """Let a new job pass that shares neither its name nor, unless it appends, its outputs.

        Args:
            plan: of the new job.
            stored: the jobs of the store, as of one transaction.
            append: the job is to write to an output although another job does.

        Returns:
            Warnings about outputs that have, or get, rows of other jobs.

        Raises:
            JobConflictError: a job that can still run has the name, or an output of the plan.
        """
        if is_preview(plan):
            return ()
        jobs = stored.jobs()
        self._read(stored, jobs)
        shared = [(job, output) for job in jobs for output in self._shared(plan, job)]
        living = [(job, output) for job, output in shared if job.state is not JobState.FINISHED]
        refused = [pair for pair in living if _is_exclusive(pair[1]) and not append]
        named = next((job for job in jobs if job.takes(plan.name)), None)
        if named is not None:
            raise _name_taken(named, [out for job, out in refused if job.id == named.id])
        if refused:
            raise _output_taken(*refused[0])
        return tuple(_warning(job, output) for job, output in shared)

    def _read(self, stored: StoredJobs, jobs: Sequence[StoredJob]) -> None:
        """Learn the outputs of jobs that are new; a plan never changes."""
        self._known = {job.id: self._known[job.id] for job in jobs if job.id in self._known}
        for job_id, content in stored.plans([j.id for j in jobs if j.id not in self._known]):
            try:
                self._known[job_id] = outputs_of(plan_codec.load(content))
            except SluiceError:  # the job cannot start either
                self._known[job_id] = ()

    def _shared(self, plan: JoinPlan, job: StoredJob) -> Iterator[Output]:
        """The outputs of `plan` to which `job` writes."""
        for own in outputs_of(plan):
            for other in self._known.get(job.id, ()):
                if self._are_same(own.sink, other.sink):
                    is_topic = isinstance(other.sink, KafkaSink)
                    exclusive = other if is_topic and _is_exclusive(other) else own
                    yield Output(exclusive.role, exclusive.sink)
                    break

    def _are_same(self, own: DeltaSink | KafkaSink, other: DeltaSink | KafkaSink) -> bool:
        if isinstance(own, KafkaSink) or isinstance(other, KafkaSink):
            both = isinstance(own, KafkaSink) and isinstance(other, KafkaSink)
            return both and _is_same_topic(own, other)  # type: ignore[arg-type] # as just seen
        try:
            return address_of(own, self._settings) == address_of(other, self._settings)
        except (OSError, RuntimeError):  # a loop of links: neither can be written
            return False


def _is_exclusive(output: Output) -> bool:
    sink = output.sink
    return isinstance(sink, DeltaSink) or sink.transactional_id_prefix is not None


def _is_same_topic(own: KafkaSink, other: KafkaSink) -> bool:
    if own.kafka.topic != other.kafka.topic:
        return False
    if own.cluster_id is not None and other.cluster_id is not None:
        return own.cluster_id == other.cluster_id
    return not _servers(own).isdisjoint(_servers(other))


def _servers(sink: KafkaSink) -> set[str]:
    return {server.strip().lower() for server in sink.kafka.bootstrap_servers.split(",")}


def _name_taken(job: StoredJob, outputs: Sequence[Output]) -> JobConflictError:
    also = f", and writes to {outputs[0].text} as this one would" if outputs else ""
    other = "give this one another name with --name" + (" and add --append" if outputs else "")
    return JobConflictError(
        f'job {job.id} has the name "{job.name}" and is {job.state}{also}',
        hint=f"Remove that job with sluice jobs rm {job.id}, or {other}.",
    )


def _output_taken(job: StoredJob, output: Output) -> JobConflictError:
    if job.desired_state is DesiredState.REMOVED:
        return JobConflictError(
            f'{output.text} is written by job {job.id} "{job.name}", which is being removed',
            hint=f"Wait until sluice jobs get {job.id} no longer finds that job.",
        )
    return JobConflictError(
        f'{output.text} is written by job {job.id} "{job.name}", which is {job.state}',
        hint=f"Remove that job with sluice jobs rm {job.id}, or submit with --append to have the "
        "rows of both jobs there.",
    )


def _warning(job: StoredJob, output: Output) -> str:
    if job.state is JobState.FINISHED:
        return f'{output.text} has rows of job {job.id} "{job.name}", which has finished.'
    return f'{output.text} is also written by job {job.id} "{job.name}".'
