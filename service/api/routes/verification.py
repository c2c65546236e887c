"""Tables against their sources: `{id}:verify` compares them, `{id}/freshness/wait` waits."""

import threading
import time
from typing import Any

from fastapi import APIRouter

from joins.lookback.tokens import Found, first_batch
from joins.plan.errors import UnknownDimensionError
from joins.plan.positions import TokenKind, token_of
from service.api.http.access import OPERATOR
from service.api.routes.inspection import inspect
from service.api.routes.runner_requests import send_to_runner
from service.api.services import Injected, JobId, Services
from service.errors import RunnerAbsentError
from service.jobs.store.plan_codec import load
from service.jobs.store.runner_files import REPAIR, Asked, read_status
from service.schemas.verification import (
    PositionReached,
    PositionWait,
    VerificationReport,
    VerifyTables,
)

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


_POLL_S = 0.1
_seats = threading.BoundedSemaphore(8)  # server threads that may wait for batches
freshness_router = APIRouter(prefix="/v1/jobs", tags=["freshness"], dependencies=[OPERATOR])


@freshness_router.post("/{job_id}/freshness/wait", summary="Wait until a position is in the result")
def wait_for_position(job_id: JobId, body: PositionWait, services: Injected) -> PositionReached:
    """The first committed batch whose pin has the position, or where the job stands.

    A batch needs records of the stream: while none come, no batch has a new position.
    """
    job = services.store.get(job_id)
    tables = [dimension.name for dimension in load(job.plan).dimensions]
    if body.table not in tables:
        raise UnknownDimensionError(
            f'job "{job_id}" has no table "{body.table}"',
            hint=f"Its tables are {', '.join(tables) or 'none'}.",
        )
    token = token_of(body.position, time.time_ns() // 1_000_000)
    name = f"at:{token.value}" if token.kind is TokenKind.TIME else body.position
    layout = services.layout(job_id)
    pins = layout.checkpoint / "pins"

    def newest() -> int | None:
        status = read_status(layout.job_dir)
        probe = None if status is None else status.content.get("probe")
        return None if probe is None else probe["batch"]

    def look(batch: int | None) -> Found:
        return first_batch(pins, body.table, token, batch)

    seated = _seats.acquire(blocking=False)
    try:
        deadline = time.monotonic() + (body.timeout_s if seated else 0.0)
        known = newest()
        answer = look(known)
        while answer.batch is None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
            reported = newest()
            if reported != known:  # without a newer batch there is no other answer
                known, answer = reported, look(reported)
    finally:
        if seated:
            _seats.release()
    return PositionReached(
        job_id=job_id,
        table=body.table,
        token=name,
        text=_text(body.table, answer),
        **answer.as_json(),
    )


def _text(table: str, answer: Found) -> str:
    if answer.batch is not None:
        return f'batch {answer.batch} is the first whose version of "{table}" has the position'
    if answer.newest_batch is None:
        return "no batch is committed yet"
    if answer.proof is None:
        return f'batch {answer.newest_batch} has no proven position of "{table}" yet'
    where = dict(answer.proof.position)
    return f'batch {answer.newest_batch}, the newest, has "{table}" at {where}'
