"""Faults of looking after jobs, which come back at each look while they last."""

import time

import structlog

from joins.kernels.local_files import is_full

_log = structlog.get_logger("service.supervisor")
AGAIN_S = 60.0


class FaultLog:
    """Logs a fault when it is new, and again each minute while it lasts.

    A full disk is no fault of ours, so that it is told without a trace.
    """

    def __init__(self) -> None:
        self._newest: dict[str, tuple[str, float]] = {}

    def log(self, event: str, error: Exception, job_id: str = "") -> None:
        """Log `event`, unless the same error of the same job was just logged.

        Args:
            event: what could not be done.
            error: why.
            job_id: empty where it is not one job's.
        """
        text, now = f"{type(error).__name__}: {error}", time.monotonic()
        before, at = self._newest.get(job_id, ("", 0.0))
        if text == before and now < at + AGAIN_S:
            return
        self._newest[job_id] = text, now
        of_job = {"job_id": job_id} if job_id else {}
        if is_full(error):
            _log.error(event, error=text, **of_job)
        else:
            _log.error(event, exc_info=error, **of_job)
