"""`/v1/statements`: what the questions of a script are answered; no job is started."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter
from pydantic import Field

from service.api.http.access import OPERATOR
from service.api.routes.jobs import Injected, Services
from service.errors import JobNotFoundError
from service.jobs.store.job import DesiredState, Job
from service.jobs.submit.submission import check_script
from service.schemas.document import Body
from service.schemas.jobs import SQL_LIMIT_BYTES
from service.schemas.progress import AnswerList, AnswerView
from service.sql.answers.answers import JobRow, answers

_SHOWN_JOBS = 500
router = APIRouter(prefix="/v1/statements", tags=["statements"], dependencies=[OPERATOR])


class Statements(Body):
    """A script that asks."""

    sql: Annotated[
        str,
        Field(
            min_length=1,
            max_length=SQL_LIMIT_BYTES,
            description="EXPLAIN, DESCRIBE, SHOW, SET and STOP JOB, with what they need in front.",
        ),
    ]


@router.post("", summary="Answer statements")
def answer_statements(body: Statements, services: Injected) -> AnswerList:
    """Answer EXPLAIN, DESCRIBE, SHOW and SET, and carry out STOP JOB; declare nothing for later."""
    check_script(body.sql)
    views = [
        AnswerView(
            statement=answer.statement,
            line=answer.line,
            columns=list(answer.columns),
            rows=[list(row) for row in answer.rows],
        )
        for answer in answers(body.sql, _StoredJobs(services), services.store.catalog.entries())
    ]
    return AnswerList(answers=views)


@dataclass(frozen=True, slots=True)
class _StoredJobs:
    """The jobs of the store."""

    services: Services

    def all(self) -> Sequence[JobRow]:
        return [_row(job) for job in self.services.store.page(before=None, limit=_SHOWN_JOBS)]

    def find(self, job_id: str) -> JobRow:
        return _row(self._job(job_id))

    def stop(self, job_id: str) -> JobRow:
        self.services.want(job_id, DesiredState.STOPPED)
        return _row(self._job(job_id))

    def _job(self, job_id: str) -> Job:
        try:
            return self.services.store.get(job_id)
        except JobNotFoundError as exc:
            raise JobNotFoundError(
                f'there is no job "{job_id[:100]}"', hint="SHOW JOBS lists the ids of all jobs."
            ) from exc


def _row(job: Job) -> JobRow:
    created = datetime.fromtimestamp(job.created_at_ms / 1000, UTC)
    return JobRow(job.id, job.name, job.state, created.isoformat(timespec="milliseconds"))
