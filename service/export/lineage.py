"""Runs of jobs as OpenLineage events: START, RUNNING, then COMPLETE, ABORT or FAIL.

Source: OpenLineage, "The run cycle" and the facets SQL, JobType, ErrorMessage, Schema and
ColumnLineage.
"""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import structlog

from joins.plan.plan import BoundedMode, JoinPlan, KafkaSource
from service.client import NotFoundError, Sluice
from service.errors import ExportError
from service.export import datasets
from service.export.follow import Step
from service.schemas.jobs import JobDetail
from service.sql.planner.planner import plan_script
from service.version import program_version
from watermark.errors import SluiceError

try:
    from openlineage.client import OpenLineageClient
    from openlineage.client import facet_v2 as facets
    from openlineage.client.event_v2 import (
        InputDataset,
        Job,
        OutputDataset,
        Run,
        RunEvent,
        RunState,
        set_producer,
    )
except ModuleNotFoundError as exc:
    raise ExportError(
        f'the package of "{exc.name}" is not installed',
        hint="Install the extra: pip install 'sluice[openlineage]'.",
        passing=False,
    ) from exc

_ENDS = {"FINISHED": RunState.COMPLETE, "STOPPED": RunState.ABORT, "FAILED": RunState.FAIL}
_CONFIGURED = "OPENLINEAGE_"
_REFUSALS = frozenset(range(400, 500)) - {401, 403, 404, 408, 429}
_log = structlog.get_logger(__name__)


class LineageExporter:
    """Emits the events of each run to OpenLineage's client, jobs named in `namespace`."""

    def __init__(self, client: Sluice, receiver: OpenLineageClient, namespace: str) -> None:
        self._client = client
        self._receiver = receiver
        self._namespace = namespace
        set_producer(f"sluice/{program_version()}")

    def look(self, _run_of: object) -> None:
        """There is nothing beside transitions."""

    def tell(self, step: Step) -> None:
        """Emit the event of a transition, if it has one: none precedes a run's START."""
        if step.over or not step.begun:
            return
        event = self._event(step)
        try:
            self._receiver.emit(event)
        except Exception as exc:  # the client's transports raise any exception
            status = getattr(getattr(exc, "response", None), "status_code", None)
            if status not in _REFUSALS:
                raise ExportError(
                    f"OpenLineage's receiver has not taken an event: {exc}",
                    hint="See that it runs at the address that was given and lets us in.",
                    passing=True,
                ) from exc
            _log.error("event refused and left out", job=step.run.job_id, status=status)

    def _event(self, step: Step) -> RunEvent:
        job = self._job(step.run.job_id)
        plan = None if job is None else _planned(job.sql, job.name)
        state = _ENDS.get(step.transition.target, RunState.RUNNING)
        run_facets: dict[str, Any] = {
            "processing_engine": facets.processing_engine_run.ProcessingEngineRunFacet(
                version=program_version(), name="Sluice"
            )
        }
        if step.transition.target == "FAILED":
            run_facets["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(
                message=step.transition.cause, programmingLanguage="SQL"
            )
        return RunEvent(
            eventTime=datetime.fromtimestamp(step.transition.at_ms / 1000, UTC).isoformat(),
            eventType=RunState.START if step.begins else state,
            run=Run(runId=str(step.run.id), facets=run_facets),
            job=Job(
                namespace=self._namespace,
                name=step.run.job_id if job is None else job.name,
                facets={} if plan is None else _job_facets(plan),
            ),
            inputs=[] if plan is None else _inputs(plan),
            outputs=[] if plan is None else _outputs(plan),
        )

    def _job(self, job_id: str) -> JobDetail | None:
        try:
            return self._client.job(job_id).status()
        except NotFoundError:
            return None


def open_receiver(address: str | None) -> OpenLineageClient:
    """OpenLineage's client for `address`, else from its variables and `openlineage.yml`.

    Raises ExportError if neither names a receiver.
    """
    if address is not None:
        return OpenLineageClient(config={"transport": {"type": "http", "url": address}})
    receiver = OpenLineageClient()
    if receiver.transport.kind == "console" and not any(
        n.startswith(_CONFIGURED) for n in os.environ
    ):
        raise ExportError(
            "nothing says where OpenLineage's events go",
            hint="Give --to http://HOST:PORT, or set OPENLINEAGE_URL.",
            passing=False,
        )
    return receiver


@lru_cache(maxsize=256)
def _planned(sql: str, name: str) -> JoinPlan | None:
    try:
        return plan_script(sql, name=name).plan
    except SluiceError as exc:
        _log.warning("datasets are left out", job=name, error=exc.message)
        return None


def _job_facets(plan: JoinPlan) -> dict[str, Any]:
    source = plan.probe.source
    bounded = isinstance(source, KafkaSource) and source.bounded_mode is not BoundedMode.UNBOUNDED
    return {
        "sql": facets.sql_job.SQLJobFacet(query=plan.sql, dialect="flink"),
        "jobType": facets.job_type_job.JobTypeJobFacet(
            processingType="BATCH" if bounded else "STREAMING", integration="SLUICE", jobType="JOB"
        ),
    }


def _inputs(plan: JoinPlan) -> list[InputDataset]:
    return [
        InputDataset(
            namespace=table.dataset.namespace,
            name=table.dataset.name,
            facets={"schema": _schema(table)},
        )
        for table in datasets.inputs(plan)
    ]


def _outputs(plan: JoinPlan) -> list[OutputDataset]:
    return [
        OutputDataset(
            namespace=table.dataset.namespace,
            name=table.dataset.name,
            facets={"schema": _schema(table), "columnLineage": _column_lineage(made_of)},
        )
        for table, made_of in datasets.outputs(plan)
    ]


def _schema(table: datasets.Dataset) -> facets.schema_dataset.SchemaDatasetFacet:
    fields = [
        facets.schema_dataset.SchemaDatasetFacetFields(name=name, type=kind)
        for name, kind in table.columns
    ]
    return facets.schema_dataset.SchemaDatasetFacet(fields=fields)


def _column_lineage(
    made_of: Mapping[str, Sequence[datasets.Origin]],
) -> facets.column_lineage_dataset.ColumnLineageDatasetFacet:
    lineage = facets.column_lineage_dataset
    fields = {
        column: lineage.Fields(
            inputFields=[
                lineage.InputField(
                    namespace=origin.dataset.namespace,
                    name=origin.dataset.name,
                    field=origin.column,
                    transformations=[lineage.Transformation(type="DIRECT", subtype=origin.kind)],
                )
                for origin in origins
            ]
        )
        for column, origins in made_of.items()
    }
    return lineage.ColumnLineageDatasetFacet(fields=fields)
