"""An inspection without a job's data: a process that keeps the contract of `service.jobs.inspect`.

The job's name says how it behaves: `hang…` never ends, `flood…` prints too much, `garbage…` prints
no JSON, `mute…` prints nothing, `expired…` and `unknown…` refuse, `clean…` has no dead letters;
any other name answers, with values that try to command the terminal.
"""

import argparse
import json
import sys
import time
from pathlib import Path

HOSTILE = "\x1b[2J\x1b]0;owned\x07\u009b31m‮evil\nsecond line"
LETTER = {
    "batch": 4,
    "topic": "clicks",
    "partition": 0,
    "offset": 7,
    "reason": HOSTILE,
    "timestamp_ms": 0,
    "replayed_by": None,
    "replayed_inserts": [],
    "bytes": 12,
    "truncated": False,
    "value": HOSTILE,
    "value_base64": None,
}
REFUSALS = {"expired": "pinned-version-expired", "unknown": "unknown-batch"}


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job-dir", type=Path)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("batch").add_argument("--number", type=int)
    batches = commands.add_parser("batches")
    for name in ("below", "limit"):
        batches.add_argument(f"--{name}", type=int)
    replay = commands.add_parser("replay")
    replay.add_argument("--batch", type=int)
    replay.add_argument("--diff", action="store_true")
    replay.add_argument("--sink")
    explain = commands.add_parser("explain-row")
    for name, kind in (("topic", str), ("partition", int), ("offset", int)):
        explain.add_argument(f"--{name}", type=kind)
    explain.add_argument("--sink")
    commands.add_parser("tables")
    commands.add_parser("doctor")
    commands.add_parser("verify")
    commands.add_parser("preview")
    letters = commands.add_parser("dead-letters").add_subparsers(dest="what", required=True)
    listing = letters.add_parser("list")
    listing.add_argument("--cursor")
    listing.add_argument("--limit", type=int)
    listing.add_argument("--pending", action="store_true")
    listing.add_argument("--matching", default="")
    show = letters.add_parser("show")
    show.add_argument("--topic")
    for name in ("partition", "offset", "batch"):
        show.add_argument(f"--{name}", type=int)
    for one in (listing, show):
        one.add_argument("--value-bytes", type=int)
    return parser.parse_args()


def batch(found):
    pin = {"batch": found.number, "versions": {"users": 3}}
    return {"batch": found.number, "pin": pin, "committed": True, "records": 5}


def batches(found):
    newest = 4 if found.below is None else min(4, found.below - 1)
    numbers = list(range(newest, -1, -1))
    shown = numbers[: found.limit]
    pins = [{"batch": n, "pin": {"batch": n}, "committed": True, "records": 5} for n in shown]
    return {"items": pins, "next_cursor": shown[-1] if len(numbers) > len(shown) else None}


def replay(found):
    wrong, empty = found.batch == 13, found.batch == 14
    difference = {
        "kind": "changed",
        "table": "output",
        "partition": 0,
        "offset": 7,
        "expected": {"name": HOSTILE},
        "found": {"name": "x"},
    }
    return {
        "batch": found.batch,
        "pin": {"versions": {"users": 3}},
        "verdict": "different" if wrong else "nothing-to-compare" if empty else "identical",
        "identical": not wrong and not empty,
        "rows": 0 if empty else 5,
        "expected_rows": 0 if empty else 5,
        "digest": "aa",
        "committed_digest": "bb" if wrong else "aa",
        "differences": [difference] if wrong and found.diff else [],
        "records_missing": [{"partition": 0, "from": 1, "to": 3}] if wrong else [],
    }


def explain_row(found):
    place = {"topic": found.topic, "partition": found.partition, "offset": found.offset}
    dimension = {
        "name": "users",
        "alias": "u",
        "version": 3,
        "key": {"user_id": 1},
        "rows": [{"user_id": 1, "name": HOSTILE}],
        "current_version": 2,
        "current_equal": True,
    }
    return {
        "coordinates": place,
        "state": "joined",
        "reason": "the record has one row in the output",
        "batch": 4,
        "pin": {"versions": {"users": 3}},
        "committed_at_ms": 1_700_000_000_000,
        "record": HOSTILE,
        "output_rows": [{"name": HOSTILE}],
        "dimensions": [dimension],
        "dead_letter": None,
        "event_time": None if found.offset == 7 else EVENT_TIME,
    }


EVENT_TIME = {
    "rowtime_ms": 1_700_000_000_000,
    "arrived_in_batch": 2,
    "watermark_at_arrival_ms": None,
    "released_in_batch": 4,
    "released_by_watermark_ms": 2**63 - 1,
    "released_by_processing_time": False,
    "late": None,
    "windows": [
        {"start_ms": 0, "end_ms": 60_000, "merges": False, "fired_in_batch": None},
        {"start_ms": 30_000, "end_ms": 90_000, "merges": False, "fired_in_batch": 5},
    ],
}


def doctor(found):
    checks = [
        {"name": "disk", "ok": True, "detail": "9 GiB are free", "hint": ""},
        {"name": "clock", "ok": None, "detail": "no broker", "hint": "Start it."},
    ]
    if found.job_dir is not None and name_of(found.job_dir).startswith("sick"):
        checks.append({"name": "pins", "ok": False, "detail": HOSTILE, "hint": "Restore it."})
    return {"checks": checks}


def letter(offset):
    return {**LETTER, "offset": offset, "replayed_inserts": [1, 3] if offset == 6 else []}


def dead_letters(found):
    if found.what == "show":
        place = {"partition": found.partition, **({"topic": found.topic} if found.topic else {})}
        return {**letter(found.offset), **place}
    first = 0 if found.cursor is None else int(found.cursor.rpartition(".")[2]) + 1
    is_clean = name_of(found.job_dir).startswith("clean")
    letters = [] if is_clean else [letter(at) for at in range(first, 7)]
    items = [each for each in letters if found.matching in each["reason"]][: found.limit]
    last = items[-1]["offset"] if items else 6
    return {"items": items, "next_cursor": f"4.0.{last}" if last < 6 else None}


def tables(found):
    question = json.load(sys.stdin)["question"]
    if question["what"] == "preview":
        column = {"name": HOSTILE, "type": "STRING", "nullable": True}
        row = {"batch": 4, "output_version": 5, "values": {HOSTILE: HOSTILE}}
        return {
            "table": "o",
            "columns": [column],
            "batches": [],
            "items": [row],
            "truncated": False,
        }
    told = {"table": "users", "source": "mysql-cdc", "primary_key": ["id"], "complete": True}
    told |= {"columns": [{"name": "id", "type": "STRING", "nullable": False}]}
    if question["what"] == "dimensions":
        return {"items": [{**told, "version": 3, "oldest_version": 1, "pinned_version": None}]}
    place = {"position": {"epoch": 0, "file": 1, "pos": 2, "row": 0}, "source_ts_ms": 0}
    row = {"key": {"id": HOSTILE}, "values": {"id": HOSTILE}, **place}
    if question["what"] == "rows":
        versions = {"version": 3, "newest_version": 3}
        return {**told, **versions, "items": [row], "absent": [], "next_cursor": None}
    if question["what"] == "history":
        return {**told, **history(row)}
    change = {**row, "change": "insert", "before": None, "after": row["values"]}
    versions = {"from_version": 1, "to_version": 3}
    return {**told, **versions, "items": [change], "next_cursor": None}


def history(row):
    place = {name: row[name] for name in ("position", "source_ts_ms")}
    changed = {"change": "update", "reason": None, "records": 1, "committed_at_ms": 0, **place}
    return {
        "key": row["key"],
        "version": 3,
        "oldest_version": 1,
        "items": [{"version": 2, "before": {"id": "7"}, "after": row["values"], **changed}],
        "beginning": {"version": 1, "values": {"id": "7"}, "reason": None, **place},
        "next_cursor": None,
    }


def verify(found):
    name = name_of(found.job_dir)
    table = {"table": "users", "source": "mysql-cdc", "started_at_ms": 1, "ended_at_ms": 2}
    if name == "near":
        reason = {"state": "not-compared", "reason": HOSTILE, "hint": "Verify it there."}
        return {"ok": False, "tables": [{**table, **reason}]}
    difference = {
        "key": {"user_id": 1},
        "kind": "changed",
        "ours": {"user_id": 1, "name": HOSTILE},
        "theirs": {"user_id": 1, "name": "x"},
        "since_version": 3,
        "our_position": {"epoch": 0, "file": 1, "pos": 4, "row": 0},
    }
    wrong = name == "sick"
    compared = {
        "state": "different" if wrong else "equal",
        "position": {"file": "binlog.000001", "pos": 4},
        "rows": 40,
        "differences": int(wrong),
        "items": [difference] if wrong else [],
    }
    return {"ok": not wrong, "tables": [{**table, **compared}]}


def preview(found):
    question = json.load(sys.stdin)["question"]
    plan = json.loads(question["plan"])
    if plan["name"].startswith("unseen"):
        return {"inserts": [{"sink_table": "enriched", "reason": "batch 4 is gone"}]}
    example = {"place": "clicks/0/7", "before": {"name": HOSTILE}, "after": None}
    rows = {"rows_before": 9, "rows_after": 8, "rows_removed": 1, "examples": [example]}
    return {
        "inserts": [
            {"sink_table": "enriched", "batches": question["batches"], "records": 9, **rows}
        ]
    }


COMMANDS = {
    "preview": preview,
    "verify": verify,
    "tables": tables,
    "batch": batch,
    "batches": batches,
    "replay": replay,
    "explain-row": explain_row,
    "doctor": doctor,
    "dead-letters": dead_letters,
}


def name_of(job_dir):
    return json.loads((job_dir / "plan.json").read_bytes())["name"]


def misbehave(name):
    if name.startswith("hang"):
        time.sleep(600)
    if name.startswith("flood"):
        for _ in range(40):
            sys.stdout.write("x" * (1 << 20))
        sys.exit(0)
    if name.startswith("garbage"):
        sys.stdout.write("Traceback: no JSON\n")
        sys.exit(1)
    if name.startswith("mute"):
        sys.exit("cannot import")


def answer(found):
    name = "" if found.job_dir is None else name_of(found.job_dir)
    misbehave(name)
    for prefix, kind in REFUSALS.items():
        if name.startswith(prefix):
            error = {"type": kind, "message": f"version 3 {HOSTILE}", "hint": "Choose another."}
            return {"ok": False, "error": error}
    return {"ok": True, "result": COMMANDS[found.command](found)}


def main():
    told = answer(parse())
    sys.stdout.write(json.dumps(told) + "\n")
    sys.exit(0 if told["ok"] else 1)


if __name__ == "__main__":
    main()
