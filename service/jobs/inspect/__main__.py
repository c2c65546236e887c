"""Inspects a job and prints one JSON object; it reads only, with or without a runner.

`python -m service.jobs.inspect --job-dir DIR <command>`: `batch`, `batches`, `replay`,
`explain-row`, `doctor`, `dead-letters list|show`, and `tables`, `verify` and `preview`, whose
questions come through standard input. `verify` keeps its result, and needs a runner that goes on
committing. The answer is `{"ok":true,"result":{…}}` with status 0, or
`{"ok":false,"error":{"type","message","hint"}}` with status 1. It starts no Spark and no JVM.
"""

import gc

from service.footprint import leave_out

if __name__ == "__main__":
    gc.disable()  # nothing that is loaded is garbage
    leave_out("pandas")  # pyarrow would load it

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from joins.adapters.process.sessions import redact_standard_error
from joins.durable.checkpoint import Checkpoint
from joins.durable.dead_rows import dead_rows_of
from joins.durable.letter_replays import LetterReplays
from joins.durable.pins import Pin, shown_pin
from joins.durable.probe_lives import known_topics
from joins.lookback.dead_letters import Coordinates as LetterPlace
from joins.lookback.dead_letters import DeadLetter, DeadLetters
from joins.lookback.explain_row import Coordinates
from joins.lookback.history import History, HistoryPlaces
from joins.plan.errors import UnknownBatchError
from service.jobs.inspect.past import (
    generated_stream,
    histories,
    open_explainer,
    open_preview,
    open_replayer,
    plan_of,
)
from service.jobs.store import plan_codec
from service.jobs.store.layout import JobLayout
from service.logs import configure_logs
from service.security.secrets import take_over
from watermark.errors import SluiceError

Result = Mapping[str, Any]


def show_batch(job_dir: Path, arguments: argparse.Namespace) -> Result:
    inserts = histories(job_dir)
    return _batch_json(inserts, inserts[0].pin(arguments.number))


def list_batches(job_dir: Path, arguments: argparse.Namespace) -> Result:
    try:
        inserts = histories(job_dir)
    except UnknownBatchError:
        return {"items": [], "next_cursor": None}
    pins = list(islice(inserts[0].pins_below(arguments.below), arguments.limit + 1))
    shown = pins[: arguments.limit]
    more = len(pins) > len(shown)
    return {
        "items": [_batch_json(inserts, pin) for pin in shown],
        "next_cursor": shown[-1].batch if more else None,
    }


def _batch_json(inserts: Sequence[History], pin: Pin) -> dict[str, Any]:
    """The batch: the commit of the first INSERT, and `outputs` of all."""
    history = inserts[0]
    outputs = [_output_json(each, pin) for each in inserts]
    output, letters = outputs[0], history.dead_letters.of(pin.batch)
    return {
        "batch": pin.batch,
        "pin": shown_pin(pin, history.topics),
        "records": pin.records(),
        "committed": all(each["committed"] for each in outputs),
        "committed_at_ms": history.committed_at_ms(pin.batch),
        "counts": output["counts"],
        "freshness_ms": pin.freshness_ms(),
        "output_version": output["output_version"],
        "dead_letters_version": None if letters is None else letters.version,
        "life": history.life_of(pin.batch).shown(),
        **({"outputs": outputs} if len(outputs) > 1 else {}),
    }


def _output_json(history: History, pin: Pin) -> dict[str, Any]:
    output = None if history.output is None else history.output.of(pin.batch)
    member = history.places.kernel.member
    return {
        "insert": 1 if member is None else member.number,
        "sink_table": None if member is None else member.sink_table,
        "connector": history.places.sink.kind,
        "committed": history.is_committed(pin.batch),
        "committed_at_ms": None if output is None else output.committed_at_ms,
        "counts": None if output is None else output.metadata.get("counts"),
        "output_version": None if output is None else output.version,
    }


def replay_batch(job_dir: Path, arguments: argparse.Namespace) -> Result:
    with open_replayer(job_dir, arguments.sink) as replayer:
        outcome = replayer.replay(arguments.batch, diff=arguments.diff)
        return {**_of_insert(replayer.places), **outcome}


def explain_row(job_dir: Path, arguments: argparse.Namespace) -> Result:
    with open_explainer(job_dir, arguments.sink, arguments.topic) as explainer:
        topic = arguments.topic
        if topic == generated_stream(plan_of(JobLayout(job_dir))):
            topic = explainer.places.probe_kafka.topic
        place = Coordinates(topic, arguments.partition, arguments.offset)
        return {**_of_insert(explainer.places), **explainer.explain(place)}


def _of_insert(places: HistoryPlaces) -> dict[str, Any]:
    member = places.kernel.member
    return {} if member is None else {"insert": member.number, "sink_table": member.sink_table}


def preview_plan(job_dir: Path, arguments: argparse.Namespace) -> Result:
    """The newest batches under the plan of the question, an INSERT each."""
    question = arguments.question
    plan = plan_codec.load(question["plan"].encode())
    share_s = question["within_s"] / len(plan.inserts)
    inserts = []
    for number, insert in enumerate(plan.inserts):
        with open_preview(job_dir, plan, number) as preview:
            compared = preview.compare(batches=question["batches"], within_s=share_s)
        inserts.append({"sink_table": insert.sink_table, **compared})
    return {"inserts": inserts}


def doctor(job_dir: Path | None, _: argparse.Namespace) -> Result:
    from service.jobs.doctor.doctor import examine  # its imports are slow

    report: Result = examine(job_dir)
    return report


def _letters(job_dir: Path) -> DeadLetters:
    layout = JobLayout(job_dir)
    replays = LetterReplays(layout.checkpoint / "replays")
    topics = partial(known_topics, Checkpoint(layout.checkpoint))
    return DeadLetters(layout.dead_letters, replays, topics)


def _letter_json(
    letters: DeadLetters, letter: DeadLetter, shown_bytes: int | None
) -> dict[str, Any]:
    value = letter.as_json(shown_bytes=shown_bytes)
    return {**value, "place": letters.place(letter), "value_bytes": value["bytes"]}


def list_letters(job_dir: Path, arguments: argparse.Namespace) -> Result:
    letters = _letters(job_dir)
    page = letters.page(
        after=arguments.cursor,
        limit=arguments.limit,
        pending=arguments.pending,
        matching=arguments.matching,
    )
    after = page.next_after
    is_first = arguments.cursor is None
    return {
        "rows": list(_left_out_rows(JobLayout(job_dir))) if is_first else [],
        "items": [_letter_json(letters, letter, arguments.value_bytes) for letter in page.letters],
        "next_cursor": None if after is None else ".".join(map(str, after)),
    }


def _left_out_rows(layout: JobLayout) -> Iterator[dict[str, Any]]:
    checkpoint = Checkpoint(layout.checkpoint)
    for dimension in plan_of(layout).dimensions:
        dead = dead_rows_of(checkpoint, dimension.name)
        for key, size_bytes in dead.rows.items():
            reason = f"{size_bytes} bytes, a message has {dead.most_bytes} at the most"
            yield {"table": dimension.name, "key": key, "bytes": size_bytes, "reason": reason}


def show_letter(job_dir: Path, arguments: argparse.Namespace) -> Result:
    letters = _letters(job_dir)
    number = letters.number(arguments.topic, arguments.partition)
    letter = letters.find(number, arguments.offset, arguments.batch)
    return _letter_json(letters, letter, arguments.value_bytes)


def show_tables(job_dir: Path, arguments: argparse.Namespace) -> Result:
    from service.jobs.inspect.tables import JobTables

    return JobTables(job_dir).answer(arguments.question)


def verify_tables(job_dir: Path, arguments: argparse.Namespace) -> Result:
    from service.jobs.inspect.verify import verify

    return verify(job_dir, arguments.question)


# The process
# --------------------------------------------------------------------------------------------------


def _cursor(text: str) -> LetterPlace:
    batch, partition, offset = (int(part) for part in text.split("."))
    return batch, partition, offset


_Option = Mapping[str, Any]


def _parser() -> argparse.ArgumentParser:
    number: _Option = {"type": int}
    some: _Option = {**number, "required": True}
    flag: _Option = {"action": "store_true"}
    place: Mapping[str, _Option] = {"topic": {}, "partition": some, "offset": some}
    parser = argparse.ArgumentParser(prog="sluice-inspect")
    parser.add_argument("--job-dir", type=Path)
    commands = parser.add_subparsers(required=True)
    _add(commands.add_parser("batch"), show_batch, number=some)
    _add(
        commands.add_parser("batches"),
        list_batches,
        below=number,
        limit={"type": int, "default": 50},
    )
    _add(commands.add_parser("replay"), replay_batch, batch=some, diff=flag, sink={})
    _add(
        commands.add_parser("explain-row"),
        explain_row,
        **{**place, "topic": {"required": True}},
        sink={},
    )
    _add(commands.add_parser("doctor"), doctor)
    _add(commands.add_parser("tables"), show_tables)
    _add(commands.add_parser("verify"), verify_tables)
    _add(commands.add_parser("preview"), preview_plan)
    letters = commands.add_parser("dead-letters").add_subparsers(required=True)
    _add(
        letters.add_parser("list"),
        list_letters,
        cursor={"type": _cursor},
        limit={"type": int, "default": 100},
        pending=flag,
        matching={"default": ""},
        value_bytes={"type": int, "default": 1024},
    )
    show = letters.add_parser("show")
    _add(show, show_letter, **place, batch=number, value_bytes=number)
    return parser


def _add(parser: argparse.ArgumentParser, run: Callable[..., Any], **options: _Option) -> None:
    parser.set_defaults(run=run)
    for name, settings in options.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)


def main() -> int:
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.job_dir is None and arguments.run is not doctor:
        parser.error("--job-dir is missing")
    arguments.question = take_over()
    redact_standard_error()
    configure_logs("WARNING")
    job_dir = None if arguments.job_dir is None else arguments.job_dir.resolve()
    try:
        answer: dict[str, Any] = {"ok": True, "result": arguments.run(job_dir, arguments)}
    except SluiceError as exc:
        error = {"type": exc.fault, "message": exc.message, "hint": exc.hint}
        answer = {"ok": False, "error": error}
    sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
    return 0 if answer["ok"] else 1


if __name__ == "__main__":
    gc.freeze()
    gc.enable()
    sys.exit(main())
