"""`sluice dlq ls | show | replay | discard`: dead letters."""

import base64
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from joins.plan.stream_topics import NAME
from service.cli.inspect import operator
from service.cli.options import Form, Job, Key, Server, Timeout, open_client
from service.cli.output import (
    OutputFormat,
    clean,
    facts_table,
    number,
    one_line,
    or_dash,
    say_more,
    show,
    table,
    tell,
)
from service.errors import SubmissionError

if TYPE_CHECKING:
    from service.schemas.inspection import (
        DeadLetterPage,
        DeadLetterReplayed,
        DeadLettersDiscarded,
        DeadLetterView,
    )

_PLACE = re.compile(rf"(?:({NAME})/)?(\d{{1,10}})/(\d{{1,19}})")
_SHOWN = 100
_VALUE_LIMIT_BYTES = 16 << 20
app = typer.Typer(help="List, show, replay and discard dead letters.", no_args_is_help=True)
Place = Annotated[
    str,
    typer.Argument(
        help="partition/offset of the record; with several topics topic/partition/offset."
    ),
]
Places = Annotated[
    list[str] | None,
    typer.Argument(help="partition/offset of each record, or topic/partition/offset."),
]
Everything = Annotated[bool, typer.Option("--all", help="All pending letters.")]
Batch = Annotated[int | None, typer.Option(help="Batch, if an offset has several letters.", min=0)]
Matching = Annotated[
    str | None, typer.Option(help="Only pending letters whose reason contains this text.")
]


@app.command("ls")
def list_letters(
    job: Job,
    limit: Annotated[int, typer.Option(help="Maximum number of letters.", min=1, max=500)] = 100,
    cursor: Annotated[str | None, typer.Option(help="Cursor of the previous page.")] = None,
    pending: Annotated[
        bool,
        typer.Option("--pending", help="Only letters that are neither replayed nor discarded."),
    ] = False,
    matching: Annotated[
        str | None, typer.Option(help="Only letters whose reason contains this text.")
    ] = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """List dead letters with their reasons."""
    with open_client(server) as client:
        letters = client.job(job).dead_letters.list(pending=pending, matching=matching)
        tell(letters.page(limit, cursor), output, _show_letters)


def _show_letters(page: "DeadLetterPage") -> None:
    rows = table("BATCH", "RECORD", "REPLAYED BY", "BYTES", "REASON", "VALUE")
    for letter in page.items:
        place = one_line(letter.place or f"{letter.partition}/{letter.offset}")
        counts = (_replayed(letter), number(letter.bytes))
        texts = (one_line(letter.reason, _SHOWN), one_line(_value(letter), _SHOWN))
        rows.add_row(str(letter.batch), place, *counts, *texts)
    show(rows)
    if page.rows:
        missing = table("TABLE", "KEY", "BYTES", "REASON")
        for row in page.rows:
            key, reason = one_line(row.key, _SHOWN), one_line(row.reason, _SHOWN)
            missing.add_row(one_line(row.table), key, number(row.bytes), reason)
        show(Text("Rows that dimensions lack:"), missing)
    say_more(page.next_cursor)


@app.command("show")
def show_letter(
    job: Job,
    place: Place,
    batch: Batch = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Only the value's bytes; not to a terminal.")
    ] = False,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show one dead letter with its value."""
    query: dict[str, Any] = {} if batch is None else {"batch": batch}
    where = _coordinates(place)
    query |= {"topic": where["topic"]} if "topic" in where else {}
    if raw and sys.stdout.isatty():
        raise SubmissionError(
            "raw bytes are not printed to a terminal",
            hint="Redirect them to a file: sluice dlq show … --raw > value.json",
        )
    with open_client(server) as client:
        query |= {"value_bytes": _VALUE_LIMIT_BYTES} if raw else {}
        letter = client.job(job).dead_letters.get("{partition}/{offset}".format(**where), **query)
    if raw:
        if letter.truncated:
            raise SubmissionError(
                f"value has {letter.bytes} bytes, expected at most {_VALUE_LIMIT_BYTES}",
                hint="Read it from its topic, partition and offset.",
            )
        if letter.value is not None:
            sys.stdout.buffer.write(letter.value.encode())
        elif letter.value_base64 is not None:
            sys.stdout.buffer.write(base64.b64decode(letter.value_base64))
    else:
        tell(letter, output, _show_letter)


def _show_letter(letter: "DeadLetterView") -> None:
    names = ("topic", "partition", "offset", "batch", "reason", "bytes")
    facts = [(name, one_line(or_dash(getattr(letter, name)), 2000)) for name in names]
    facts.insert(-1, ("replayed by", _replayed(letter)))
    if letter.discarded_by is not None:
        because = f"{letter.discarded_because} (by {letter.discarded_by})"
        facts.insert(-1, ("discarded", one_line(because, 2000)))
    facts.append(("shown", "start of the value" if letter.truncated else "whole value"))
    show(facts_table(facts), Text(""))
    typer.echo(clean(_value(letter)))


def _replayed(letter: "DeadLetterView") -> str:
    """The replay that completed the letter; else the INSERTs already replayed."""
    if letter.discarded_by is not None:
        return "discarded"
    if letter.replayed_by is not None or not letter.replayed_inserts:
        return number(letter.replayed_by)
    return "in INSERT " + ", ".join(str(insert) for insert in letter.replayed_inserts)


@app.command("replay")
def replay_letters(  # noqa: PLR0913 (typer makes each parameter an option)
    job: Job,
    places: Places = None,
    everything: Everything = False,
    matching: Matching = None,
    value_file: Annotated[
        Path | None, typer.Option(help="File with the corrected value of the record.")
    ] = None,
    batch: Batch = None,
    timeout: Timeout = 600.0,
    key: Key = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Join dead letters again with the pin of their batch; exits with 1 if some are still bad."""
    selection = _selection(places or [], value_file, batch, matching, everything=everything)
    with open_client(server) as client:
        outcome = client.job(job).dead_letters.replay(
            selection, idempotency_key=key, timeout_s=timeout
        )
    tell(outcome, output, _show_replayed)
    if outcome.still_bad:
        raise typer.Exit(1)


@app.command("discard")
def discard_letters(  # noqa: PLR0913 (typer makes each parameter an option)
    job: Job,
    reason: Annotated[str, typer.Option(help="Reason (recorded).")],
    places: Places = None,
    everything: Everything = False,
    matching: Matching = None,
    batch: Batch = None,
    timeout: Timeout = 600.0,
    key: Key = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Discard dead letters. They stay listed with the reason; replays skip them."""
    selection = _selection(places or [], None, batch, matching, everything=everything)
    with open_client(server) as client:
        outcome = client.job(job).dead_letters.discard(
            reason,
            selection.get("records"),
            matching=matching,
            by=operator(),
            idempotency_key=key,
            timeout_s=timeout,
        )
    tell(outcome, output, lambda _: show(_counts(outcome, "discard", "already_settled")))


def _selection(
    places: list[str],
    value_file: Path | None,
    batch: int | None,
    matching: str | None,
    *,
    everything: bool,
) -> dict[str, Any]:
    """The body of a request; with `matching` all letters with such a reason are meant."""
    everything |= matching is not None
    if everything == bool(places):
        name = "--all" if matching is None else "--matching"
        raise SubmissionError(
            "no record given" if not places else f"{name} cannot be combined with records",
            hint="Name records as partition/offset, or give --matching or --all.",
        )
    if value_file is not None and len(places) != 1:
        raise SubmissionError(
            "--value-file requires exactly one record", hint="Replay the records one by one."
        )
    if everything:
        if batch is not None:
            raise SubmissionError(
                "--batch requires records",
                hint="Name the records of the batch as partition/offset.",
            )
        which = {} if matching is None else {"matching": matching}
        return {"all": True, "by": operator(), **which}
    more: dict[str, Any] = {} if batch is None else {"batch": batch}
    if value_file is not None:
        more["value_base64"] = base64.b64encode(_bytes_of(value_file)).decode()
    records = [{**_coordinates(place), **more} for place in places]
    return {"records": records, "by": operator()}


def _bytes_of(path: Path) -> bytes:
    try:
        return sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as exc:
        raise SubmissionError(
            f'value "{path}" cannot be read: {exc.strerror}',
            hint="Give the path of a file, or - for standard input.",
        ) from exc


def _counts(
    outcome: "DeadLetterReplayed | DeadLettersDiscarded", number_name: str, *names: str
) -> Table:
    shown = (number_name, "records", *names, "remaining")
    return facts_table((name.replace("_", " "), number(getattr(outcome, name))) for name in shown)


def _show_replayed(outcome: "DeadLetterReplayed") -> None:
    show(_counts(outcome, "replay", "rows", "already_replayed"))
    if outcome.still_bad:
        rows = table("STILL BAD", "REASON")
        for bad in outcome.still_bad:
            place = f"{bad.partition}/{bad.offset}"
            place = place if bad.topic is None else f"{bad.topic}/{place}"
            rows.add_row(one_line(place), one_line(bad.reason))
        show(Text(""), rows)


def _coordinates(place: str) -> dict[str, Any]:
    match = _PLACE.fullmatch(place)
    if match is None:
        raise SubmissionError(
            f'"{place}" is not a record, expected partition/offset',
            hint="Use the column RECORD of sluice dlq ls.",
        )
    topic = {} if match[1] is None else {"topic": match[1]}
    return {**topic, "partition": int(match[2]), "offset": int(match[3])}


def _value(letter: "DeadLetterView") -> str:
    if letter.value is not None:
        return letter.value
    encoded = letter.value_base64
    return "-" if encoded is None else f"base64 {encoded}"
