"""`POST /v1/jobs/{id}/freshness/wait`: the first batch that has a position of a table's source."""

import threading
import time

from fastapi import APIRouter

from joins.lookback.tokens import Found, first_batch
from joins.plan.errors import UnknownDimensionError
from joins.plan.positions import TokenKind, token_of
from service.api.http.access import OPERATOR
from service.api.services import Injected, JobId
from service.jobs.store.plan_codec import load
from service.jobs.store.runner_files import read_status
from service.schemas.verification import PositionReached, PositionWait

_POLL_S = 0.1
_seats = threading.BoundedSemaphore(8)  # server threads that may wait for batches
router = APIRouter(prefix="/v1/jobs", tags=["freshness"], dependencies=[OPERATOR])


@router.post("/{job_id}/freshness/wait", summary="Wait until a position is in the result")
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
