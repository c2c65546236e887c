"""`POST /v1/jobs/{id}:verify`: compares the job's tables with their sources."""

from fastapi import APIRouter

from service.api.http.access import OPERATOR
from service.api.routes.inspection import inspect
from service.api.services import Injected, JobId
from service.schemas.verification import VerificationReport, VerifyTables

_TIMEOUT_S = 3_600.0
router = APIRouter(tags=["verification"], dependencies=[OPERATOR])


@router.post("/v1/jobs/{job_id}:verify", summary="Compare tables with their sources")
def verify_job(job_id: JobId, body: VerifyTables, services: Injected) -> VerificationReport:
    """Read chunks of the source at a position and compare the copy's rows as of it.

    Nothing stands still: changes behind the position take no part. A large table takes minutes;
    use a client without a timeout, or a sample. The newest result of each table is kept.
    """
    question = body.model_dump(exclude_none=True)
    answer = inspect(services, job_id, ["verify"], timeout_s=_TIMEOUT_S, question=question)
    return VerificationReport.model_validate({"job_id": job_id, **answer})
