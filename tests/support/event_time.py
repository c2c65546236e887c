"""What a job in event time reports: recorded from a runner, with two partitions and a table."""

from typing import Any

AT_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z


def generator(name: str, watermark_ms: int | None, **more: Any) -> dict[str, Any]:
    source, _, partition = name.rpartition("/")
    return {
        "channel": name,
        "input": source,
        "topic": None,
        "partition": int(partition),
        "watermark_ms": watermark_ms,
        "use_processing_time": False,
        "backlog_end": None,
        "status": "ACTIVE",
        "aligned": True,
        "active_at_ms": AT_MS + 50_000,
        "idle_timeout_ms": None,
        "max_wait_ms": None,
        **more,
    }


def heard(name: str, watermark_ms: int | None, **more: Any) -> dict[str, Any]:
    given = {"use_processing_time": False, "status": "ACTIVE"}
    return {"input": name, "watermark_ms": watermark_ms, **given, **more}


def event_time(**changes: Any) -> dict[str, Any]:
    idle = {"status": "IDLE", "aligned": False, "active_at_ms": AT_MS - 60_000}
    return {
        "watermark_ms": AT_MS,
        "use_processing_time": False,
        "window_watermark_ms": None,
        "emit": "on-periodic",
        "inputs": [heard("probe", AT_MS + 40_000), heard("rates", AT_MS)],
        "channels": [
            generator("probe/0", AT_MS + 40_000, backlog_end=70),
            generator("probe/1", None, **idle, idle_timeout_ms=5_000),
            generator("rates/0", AT_MS),
        ],
        "waiting_rows": 12_000,
        "waiting_bytes": 480_000,
        "oldest_waiting_ms": AT_MS + 1,
        "next_window_ms": None,
        "window_rows": 0,
        "late_records": 7,
        "fired_rows": 0,
        "state_files": {"waiting": 3, "windows": 0},
        "waits_for": {
            "channel": "rates/0",
            "input": "rates",
            "topic": None,
            "partition": 0,
            "watermark_ms": AT_MS,
            "behind_ms": 40_000,
            "text": '12,000 records wait for the watermark of table "rates", partition 0, '
            "which is 40 s behind",
        },
        "late_rows": None,
        **changes,
    }


def released(**changes: Any) -> dict[str, Any]:
    none = {"waiting_rows": 0, "waiting_bytes": 0, "oldest_waiting_ms": None, "waits_for": None}
    return event_time(**{**none, **changes})


def windows(**changes: Any) -> dict[str, Any]:
    """Windows of a minute over the stream, of which none has ended yet."""
    given = {
        "window_watermark_ms": AT_MS,
        "next_window_ms": AT_MS + 40_000,
        "window_rows": 300,
        "late_records": 0,
        "waits_for": {
            "channel": "probe/0",
            "input": "probe",
            "partition": 0,
            "watermark_ms": AT_MS,
            "behind_ms": 40_000,
            "text": "open windows wait for the watermark of the stream, partition 0, which is "
            "40 s behind",
        },
    }
    return released(**{**given, **changes})
