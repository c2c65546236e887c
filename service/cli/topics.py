"""`sluice topic create | ls | rm | produce | peek`, and how commands reach brokers, registries."""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from service.cli.options import Form, Server
from service.cli.output import (
    OutputFormat,
    instant,
    number,
    one_line,
    say,
    show,
    show_json,
    table,
    tell,
)
from service.errors import SubmissionError

if TYPE_CHECKING:
    from service.wiring.topic_access import TopicRecord, Write
from pathlib import Path
from typing import TYPE_CHECKING

from joins.plan.connections import (
    CLIENT_ID,
    CLIENT_SECRET,
    FILES,
    KEY_PASSWORD,
    SCOPE,
    TOKEN_URL,
    VERIFIED_NAME,
)
from service.cli.options import open_client
from service.errors import UnreachableError

if TYPE_CHECKING:
    from joins.plan.connections import RegistryOptions
    from joins.plan.plan import KafkaOptions  # slow to load, and few commands ask brokers


_CLIENT = frozenset(
    {
        *("security.protocol", "sasl.mechanism", "sasl.username", "sasl.password"),
        *(TOKEN_URL, CLIENT_ID, CLIENT_SECRET, SCOPE),
        *(*FILES, KEY_PASSWORD, VERIFIED_NAME),
    }
)
_REGISTRY = "schema.registry."
_USER, _CA = f"{_REGISTRY}basic.auth.user.info", f"{_REGISTRY}ssl.ca.location"
_KNOWN = _CLIENT | {_USER, _CA}
_USUAL = "localhost:9092"

TopicName = Annotated[str, typer.Argument(help="Name of the topic.", metavar="TOPIC")]
Servers = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        "--bootstrap",
        help="Brokers, such as localhost:9092; default: the control plane's.",
        envvar="SLUICE_KAFKA_BOOTSTRAP_SERVERS",
    ),
]
ClientConfig = Annotated[
    Path | None,
    typer.Option(
        help=f"File of NAME=VALUE lines: {', '.join(sorted(_KNOWN))}.", exists=True, dir_okay=False
    ),
]


def brokers(servers: str | None, server: str | None) -> str:
    """The named brokers, else the control plane's, else localhost if none answers.

    Raises UnreachableError if `server` is named and does not answer: its brokers are unknown.
    """
    if servers is not None:
        return servers
    try:
        with open_client(server) as client:
            return client.version().kafka_bootstrap_servers or _USUAL
    except UnreachableError:
        if server is not None:
            raise
        return _USUAL


def read_config(config: Path | None) -> dict[str, str]:
    """Names and values in a file; raises typer.BadParameter for a malformed line."""
    known: dict[str, str] = {}
    try:
        text = "" if config is None else config.read_text(encoding="utf-8")
    except (OSError, ValueError) as exc:
        raise typer.BadParameter(
            f'"{config}" cannot be read as UTF-8: {type(exc).__name__}', param_hint="--config"
        ) from exc
    for line in text.split("\n"):
        name, sign, value = (part.strip() for part in line.partition("="))
        if not name or name.startswith("#"):
            continue
        if not sign or name not in _KNOWN:
            raise typer.BadParameter(
                f'"{one_line(name)}" is unknown, expected one of {", ".join(sorted(_KNOWN))}',
                param_hint="--config",
            )
        known[name] = value
    return known


def kafka_of(topic: str, servers: str, known: dict[str, str]) -> "KafkaOptions":
    """Connection of a topic, with the settings from `read_config`."""
    from joins.plan.plan import KafkaOptions

    properties = {name: value for name, value in known.items() if name in _CLIENT}
    for file, text in FILES.items():
        if file in properties:
            properties[text] = _pem(properties.pop(file)) or ""
    return KafkaOptions(servers, topic, tuple(sorted(properties.items())))


def registry_of(url: str | None, known: dict[str, str]) -> "RegistryOptions | None":
    """Connection of a schema registry; None without an address."""
    from joins.plan.connections import RegistryOptions

    if url is None:
        return None
    return RegistryOptions(url, known.get(_USER), ca=_pem(known.get(_CA)))


def _pem(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as exc:
        raise typer.BadParameter(
            f'"{one_line(path)}" cannot be read as PEM: {type(exc).__name__}', param_hint="--config"
        ) from exc


_BLOCK_BYTES = 1 << 16
_CELL = 300
_USUAL_PEEK = 10
_SETTING = re.compile(r"[a-z0-9.]+=.*", re.DOTALL)
app = typer.Typer(
    help="Create, list and delete topics; write and show records.", no_args_is_help=True
)


@app.command("create")
def create_topic(
    topic: TopicName,
    partitions: Annotated[int, typer.Option(help="Partitions.", min=1, max=10_000)] = 1,
    replication: Annotated[
        int, typer.Option(help="Replication factor; -1 for the cluster's default.")
    ] = -1,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Topic setting NAME=VALUE, such as cleanup.policy=compact; repeatable."
        ),
    ] = None,
    bootstrap_servers: Servers = None,
    config: ClientConfig = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Create a topic."""
    from service.wiring.topic_access import make_topic  # slow to load

    for each in settings or ():
        if not _SETTING.fullmatch(each):
            raise typer.BadParameter(f'"{one_line(each)}" is not NAME=VALUE', param_hint="--set")
    chosen = dict(each.split("=", 1) for each in settings or ())
    servers = brokers(bootstrap_servers, server)
    make_topic(kafka_of(topic, servers, read_config(config)), partitions, replication, chosen)
    made = {"topic": topic, "partitions": partitions, "bootstrap_servers": servers}
    plural = "" if partitions == 1 else "s"
    text = f"topic {topic} created on {servers}: {partitions} partition{plural}"
    tell(made, output, lambda _: say(text))


@app.command("ls")
def list_topics(
    every: Annotated[
        bool, typer.Option("--all", help="Also those of Kafka itself and of Sluice's jobs.")
    ] = False,
    bootstrap_servers: Servers = None,
    config: ClientConfig = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """List topics with their partitions and records."""
    from service.wiring.topic_access import listed_topics  # slow to load

    servers = brokers(bootstrap_servers, server)
    topics = listed_topics(kafka_of("", servers, read_config(config)), every=every)
    rows = [
        {"topic": each.name, "partitions": each.partitions, "records": each.records}
        for each in topics
    ]

    def show_rows(_: object) -> None:
        listing = table("TOPIC", "PARTITIONS", "RECORDS")
        for each in topics:
            listing.add_row(one_line(each.name), number(each.partitions), number(each.records))
        if topics:
            show(listing)
        else:
            say(f"no topics on {servers}")

    tell(rows, output, show_rows)


@app.command("rm")
def remove_topic(
    topic: TopicName,
    bootstrap_servers: Servers = None,
    config: ClientConfig = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Delete a topic with its records; jobs that read or write it stall."""
    from service.wiring.topic_access import delete_topic  # slow to load

    servers = brokers(bootstrap_servers, server)
    delete_topic(kafka_of(topic, servers, read_config(config)))
    deleted = {"topic": topic, "bootstrap_servers": servers}
    tell(deleted, output, lambda _: say(f"topic {topic} deleted on {servers}"))


# Writing
# --------------------------------------------------------------------------------------------------


@app.command("produce")
def produce_records(  # noqa: PLR0913 (typer makes each parameter an option)
    topic: TopicName,
    records: Annotated[
        list[str] | None,
        typer.Argument(help="Records in JSON; default: lines of standard input."),
    ] = None,
    key: Annotated[str | None, typer.Option(help="Key of each record.")] = None,
    key_field: Annotated[
        str | None, typer.Option(help="Field of each record to use as its key.")
    ] = None,
    as_text: Annotated[
        bool, typer.Option("--text", help="Write lines unchanged; they need not be JSON.")
    ] = False,
    bootstrap_servers: Servers = None,
    config: ClientConfig = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Write records, one per line. In JSON, null is a tombstone: a record without a value."""
    from service.wiring.topic_access import writing  # slow to load

    if key_field is not None and (key is not None or as_text):
        other = "--key" if key is not None else "--text"
        raise typer.BadParameter(
            f"--key-field cannot be combined with {other}", param_hint="--key-field"
        )
    form = RecordForm(None if key is None else key.encode(), key_field, is_json=not as_text)
    kafka = kafka_of(topic, brokers(bootstrap_servers, server), read_config(config))
    with writing(kafka) as write:
        sent = Sent(topic)
        try:
            if records:
                sent.send([record.encode() for record in records], form, write)
            else:
                if sys.stdin.isatty():
                    say("Type one record per line; Ctrl-D ends the input.")
                for lines in _blocks_of_lines(sys.stdin.buffer):
                    sent.send(lines, form, write)
        finally:
            tell(sent.document(), output, lambda _: _show_sent(sent))


def _blocks_of_lines(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The lines as they arrive; one line does not wait for a full block."""
    rest = b""
    while block := stream.read1(_BLOCK_BYTES):  # type: ignore[attr-defined] # buffered ones have it
        *whole, rest = (rest + block).split(b"\n")
        yield whole
    yield [rest]


@dataclass(frozen=True, slots=True)
class RecordForm:
    """How a line becomes a record; its key is fixed, or the value of `key_field`."""

    key: bytes | None
    key_field: str | None
    is_json: bool

    def record(self, line: bytes) -> tuple[bytes | None, bytes | None]:
        """Key and value; raises ValueError for invalid JSON or a missing field."""
        if not self.is_json:
            return self.key, line
        value = json.loads(line.decode(), parse_constant=_refuse)
        key = self.key if self.key_field is None else self._key_of(value)
        return key, None if value is None else line

    def _key_of(self, value: object) -> bytes:
        if not isinstance(value, dict) or self.key_field not in value:
            raise ValueError(f'field "{self.key_field}" is missing')
        of_key = value[self.key_field]
        if of_key is None:
            raise ValueError(f'field "{self.key_field}" is null')
        return (of_key if isinstance(of_key, str) else json.dumps(of_key)).encode()


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not a JSON number")


@dataclass
class Sent:
    """The records written so far; `places` is partition → count, first and last offset."""

    topic: str
    lines: int = 0
    records: int = 0
    places: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    def send(self, lines: Iterable[bytes], form: RecordForm, write: "Write") -> None:
        """Write a record for each line that is not empty.

        Raises:
            SubmissionError: an invalid line; the records before it are written.
        """
        good: list[tuple[bytes | None, bytes | None]] = []
        try:
            for line in lines:
                self.lines += 1
                if text := line.strip() if form.is_json else line.removesuffix(b"\r"):
                    good.append(form.record(text))
        except (ValueError, RecursionError) as exc:
            self._write(good, write)
            raise SubmissionError(
                f"record {self.lines} cannot be written: {one_line(exc)}; "
                f"{number(self.records)} before it were written",
                hint="Write one JSON value per line, or use --text to write lines unchanged.",
            ) from exc
        self._write(good, write)

    def _write(self, records: Sequence[tuple[bytes | None, bytes | None]], write: "Write") -> None:
        for partition, offset in write(records) if records else ():
            count, first, last = self.places.get(partition, (0, offset, offset))
            self.places[partition] = (count + 1, min(first, offset), max(last, offset))
            self.records += 1

    def document(self) -> dict[str, Any]:
        names = ("partition", "records", "first_offset", "last_offset")
        places = [(at, *counts) for at, counts in sorted(self.places.items())]
        rows = [dict(zip(names, place, strict=True)) for place in places]
        return {"topic": self.topic, "records": self.records, "partitions": rows}


def _show_sent(sent: Sent) -> None:
    rows = table("PARTITION", "RECORDS", "FIRST OFFSET", "LAST OFFSET")
    for partition, counts in sorted(sent.places.items()):
        rows.add_row(str(partition), *map(str, counts))
    if sent.places:
        show(rows)
    say(f"{number(sent.records)} record{'' if sent.records == 1 else 's'} in topic {sent.topic}")


# Looking
# --------------------------------------------------------------------------------------------------


@app.command("peek")
def peek_records(
    topic: TopicName,
    first: Annotated[
        int | None, typer.Option(help="Show this many of the oldest records.", min=1, max=10_000)
    ] = None,
    last: Annotated[
        int | None,
        typer.Option(help="Show this many of the newest records; default: 10.", min=1, max=10_000),
    ] = None,
    bootstrap_servers: Servers = None,
    config: ClientConfig = None,
    server: Server = None,
    output: Form = OutputFormat.TABLE,
) -> None:
    """Show records with key, position, time and headers, as JSON or text, else in hexadecimal."""
    from service.wiring.topic_access import peeked  # slow to load

    if first is not None and last is not None:
        raise typer.BadParameter("--first cannot be combined with --last", param_hint="--first")
    kafka = kafka_of(topic, brokers(bootstrap_servers, server), read_config(config))
    records = peeked(kafka, first or last or _USUAL_PEEK, newest=first is None)
    if output is OutputFormat.JSON:
        show_json([_document(record) for record in records])
    else:
        _show_records(records)


def readable(data: bytes | None) -> tuple[str | None, str]:
    """Bytes as text with their form: `json`, `text`, `hex`, or `null` for None."""
    if data is None:
        return None, "null"
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return data.hex(), "hex"
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text, "text"
    return text, "json"


def _document(record: "TopicRecord") -> dict[str, Any]:
    key, key_form = readable(record.key)
    value, value_form = readable(record.value)
    headers = [(name, *readable(data)) for name, data in record.headers]
    return {
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": key,
        "key_form": key_form,
        "value": value,
        "value_form": value_form,
        "headers": [{"name": name, "value": text, "form": form} for name, text, form in headers],
    }


def _show_records(records: Sequence["TopicRecord"]) -> None:
    has_headers = any(record.headers for record in records)
    heads = ("PLACE", "TIME (UTC)", "KEY", *(("HEADERS",) if has_headers else ()), "VALUE")
    rows = table(*heads)
    for record in records:
        headers = ", ".join(f"{name}={_shown(data)}" for name, data in record.headers)
        cells = (one_line(headers, _CELL),) if has_headers else ()
        place = f"{record.partition}/{record.offset}"
        at, key = _time(record.timestamp_ms), _shown(record.key)
        rows.add_row(place, at, key, *cells, _shown(record.value))
    for column in rows.columns[:2]:
        column.no_wrap = True
    if records:
        show(rows)
    else:
        say("the topic has no records")


def _time(timestamp_ms: int | None) -> str:
    return "NULL" if timestamp_ms is None else instant(timestamp_ms).removesuffix(" UTC")


def _shown(data: bytes | None) -> str:
    text, form = readable(data)
    if text is None:
        return "NULL"
    return one_line(f"0x{text}" if form == "hex" else text, _CELL)
