"""Jobs for the status page, as their runners would report them."""

from tests.support.control_plane import script

MIN = -(2**63)
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
LONG = "a_table_whose_name_was_made_by_a_generator_" * 3


def named(name: str) -> str:
    quoted = name.replace("'", "''")
    return f"SET 'pipeline.name'='{quoted}';\n{script()}"


def channel(name: str, *, is_complete: bool) -> dict[str, object]:
    watermark = {"timestamp_ms": MIN, "use_processing_time": is_complete}
    return {"channel": name, "status": "ACTIVE", "watermark": watermark}


def dimension(name: str, rows: int, total: int, *, complete: int = 0) -> dict[str, object]:
    is_complete = complete == 2
    return {
        "name": name,
        "source": "mysql-cdc",
        "snapshot": {
            "rows_done": rows,
            "rows_total": total,
            "rows_total_is_estimate": not is_complete,
            "chunks_done": rows * 20 // total,
            "chunks_total": 20,
        },
        "generation": 1,
        "low": {"epoch": 0, "file": 12, "pos": 4056, "row": -1},
        "high": {"epoch": 0, "file": 12, "pos": 99421, "row": -1} if rows >= total else None,
        "position": {"epoch": 0, "file": 12, "pos": 100233, "row": -1},
        "changelog_version": 3 + rows * 20 // total,
        "index_version": 23 if is_complete else None,
        "fold_version": 20 if is_complete else None,
        "lag_records": 0 if is_complete else 1834,
        "streamed_records": 1834,
        "binlog_delay_ms": 420,
        "evidence": "in_band_watermark" if is_complete else None,
        "channels": [channel(f"{name}/{n}", is_complete=n < complete) for n in range(2)],
    }


def stream(**values: object) -> dict[str, object]:
    offsets = {
        "start_offsets": {"0": 0, "1": 0},
        "next_offsets": {"0": 0, "1": 0},
        "end_offsets": {"0": 81234, "1": 81766},
    }
    counts = {"held_records": 163000, "held_bytes": 48_211_000, "lag_records": 163000}
    return {"topic": "clicks", **offsets, **counts, **values}


def copying(rows: int, total: int = 1_000_000) -> dict[str, object]:
    return {
        "state": "SNAPSHOT",
        "phase": "LOAD",
        "reason": f'waiting for table "user_info": {rows:,} of about {total:,} snapshot rows '
        "are committed",
        "dimensions": [
            dimension("user_info", rows, total),
            dimension("items", 1500, 1500, complete=2),
        ],
        "combined_watermark": {"timestamp_ms": MIN, "use_processing_time": False},
        "probe": stream(),
    }


def joining(at_ms: int, **values: object) -> dict[str, object]:
    """A report in JOINING."""
    counts = {"joined_records": 201_455, "matched": 198_002, "unmatched": 3_453, "batch": 41}
    counts |= {"records_per_s": 1_250, "batch_ms": 420}
    done = {"next_offsets": {"0": 101234, "1": 100221}, "end_offsets": {"0": 101300, "1": 100301}}
    told = {**counts, **done, "freshness_ms": {"user_info": 640, "items": None}, **values}
    return {
        "state": "JOINING",
        "phase": "JOIN",
        "reason": "every snapshot is complete and committed; records are joined as they come",
        "opened_at_ms": at_ms,
        "held_at_open": 163_000,
        "dimensions": [
            dimension("user_info", 1_000_000, 1_000_000, complete=2),
            dimension("items", 1500, 1500, complete=2),
        ],
        "combined_watermark": {"timestamp_ms": MIN, "use_processing_time": True},
        "probe": stream(**told, held_records=0, held_bytes=None, lag_records=146),
        "writer": "columnar",
        "versions_at_open": {"user_info": 23, "items": 23},
        "versions": {"user_info": 24, "items": 23},
    }


def stalled() -> dict[str, object]:
    lost = {
        "type": "records-lost",
        "message": f'topic "clicks" has removed 5,120 records before they were joined {HOSTILE}',
        "hint": "Decide whether the job goes on without them. \u202egnp.exe",
    }
    down = {
        "type": "source-unavailable",
        "message": f'database "db-1:3306" of table "{HOSTILE}" does not answer',
        "hint": "Start it, or correct its address and submit the job again.",
    }
    return {
        "state": "STALLED",
        "phase": "LOAD",
        "reason": f"{HOSTILE} probe: {lost['message']}",
        "dimensions": [dimension(HOSTILE, 12, 480_000), dimension(LONG, 7, 9)],
        "combined_watermark": {"timestamp_ms": MIN, "use_processing_time": False},
        "probe": stream(topic=HOSTILE, dead_letters=17),
        "error": lost,
        "stalls": [
            {"part": "probe", **lost, "choices": ["continue"]},
            {"part": f"source {HOSTILE}", **down, "choices": []},
        ],
        "warnings": [
            {
                "type": "records-near-loss",
                "message": f'topic "{HOSTILE}" removes held records in 2 h',
                "hint": "Raise retention.ms of the topic.",
            }
        ],
    }
