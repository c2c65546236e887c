"""`POST /v1/jobs/{id}:verify`: compares the job's tables with their sources, and repairs them."""

from typing import Any

from fastapi import APIRouter

from service.api.http.access import OPERATOR
from service.api.routes.inspection import inspect
from service.api.routes.runner_requests import send_to_runner
from service.api.services import Injected, JobId, Services
from service.errors import RunnerAbsentError
from service.jobs.store.runner_files import REPAIR, Asked
from service.schemas.verification import VerificationReport, VerifyTables

_TIMEOUT_S = 3_600.0
_REPAIR_S = 90.0
router = APIRouter(tags=["verification"], dependencies=[OPERATOR])


@router.post("/v1/jobs/{job_id}:verify", summary="Compare tables with their sources")
def verify_job(job_id: JobId, body: VerifyTables, services: Injected) -> VerificationReport:
    """Read chunks of the source at a position and compare the copy's rows as of it.

    Nothing stands still: changes behind the position take no part. A large table takes minutes;
    use a client without a timeout, or a sample. The newest result of each table is kept. With
    `repair` rows that differ are sent again, and the tables compared once more.
    """
    question = body.model_dump(exclude_none=True, exclude={"by"})
    answer = inspect(services, job_id, ["verify"], timeout_s=_TIMEOUT_S, question=question)
    if body.repair and not answer["ok"]:
        repairs = {
            table["table"]: _repaired(services, job_id, table, body.by)
            for table in answer["tables"]
            if table["state"] == "different"
        }
        if any("repaired" in repair for repair in repairs.values()):
            answer = inspect(services, job_id, ["verify"], timeout_s=_TIMEOUT_S, question=question)
        tables = [{**table, **repairs.get(table["table"], {})} for table in answer["tables"]]
        answer = {**answer, "tables": tables}
    return VerificationReport.model_validate({"job_id": job_id, **answer})


def _repaired(services: Services, job_id: str, table: dict[str, Any], by: str) -> dict[str, Any]:
    body = {name: table[name] for name in ("table", "keys", "extra")}
    try:
        box, request_id = send_to_runner(services, job_id, Asked(REPAIR, body, by))
    except RunnerAbsentError as exc:
        return {"not_repaired": f"{exc.message}. {exc.hint}"}
    answer = box.wait(request_id, timeout_s=_REPAIR_S)
    if answer is None:
        return {"not_repaired": f"the runner did not answer within {_REPAIR_S:g} s"}
    if answer.error is not None:
        return {"not_repaired": f"{answer.error.message}. {answer.error.hint}"}
    return {"repaired": answer.result}
