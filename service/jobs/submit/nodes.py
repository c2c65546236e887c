"""What executors of a cluster reach: a job whose tables are in a store shares no disk with them."""

from joins.plan.plan import DeltaSink, JoinPlan, SharedSource
from service.config import Settings, runs_on_cluster
from service.errors import SubmissionError
from service.jobs.store.layout import JobLayout
from service.security.allowed import store_address


def check_nodes(plan: JoinPlan, settings: Settings, *, in_store: bool) -> None:
    """See that executors reach all that the tasks of `plan` read and write.

    With the job's own tables in a directory all nodes have to see that; then they see the rest.

    Args:
        plan: of the job.
        settings: which say where Spark runs.
        in_store: the job's own tables are in an object store.

    Raises:
        SubmissionError: they do not.
    """
    if not (in_store and runs_on_cluster(settings)):
        return
    for insert in plan.inserts:
        if isinstance(insert.sink, DeltaSink):
            _check_path(f'output "{insert.sink_table}"', insert.sink, settings)
    late = plan.probe.late_records
    if late is not None:
        _check_path(f'table of late records of "{plan.probe.table}"', late, settings)
    for dimension in plan.dimensions:
        if settings.index_dir is None:
            raise SubmissionError(
                f'dimension "{dimension.name}" is looked up in an index, and no directory of each '
                f'node is named for the executors of "{settings.spark_master}"',
                hint="Set SLUICE_INDEX_DIR to a local directory of every node and start the "
                "control plane again.",
            )
        if isinstance(dimension.source, SharedSource):
            _check_shared(dimension.name, dimension.source, settings)


def _check_path(what: str, sink: DeltaSink, settings: Settings) -> None:
    if store_address(sink, settings) is None:
        raise SubmissionError(
            f'{what} is in directory "{sink.path}", which executors of "{settings.spark_master}" '
            "do not share: the job's own tables are in a store",
            hint="Give it a path in the warehouse, such as 'orders/enriched', or the address of an "
            "object store.",
        )


def _check_shared(name: str, source: SharedSource, settings: Settings) -> None:
    if not JobLayout(settings.jobs_dir / source.job_id).is_in_store():
        raise SubmissionError(
            f'shared table "{name}" is kept in a directory, which executors of '
            f'"{settings.spark_master}" do not share: it was created before SLUICE_WAREHOUSE was '
            "set",
            hint="Drop the table and create it again; it is kept in the warehouse then.",
        )
