"""Files as a source without a broker: their sessions, and what the records say the table is."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from joins.adapters.files.feed import FileFeedSession
from joins.adapters.files.listing import FileFeedConfig
from joins.plan.plan import Field, FileFormat, FileSource, KafkaOptions
from joins.plan.types import SqlType, TypeName
from tests.support.copies import Copy
from tests.support.feeds import PARTITIONS, BatchTopic, Silent

USER_FIELDS = (
    Field("id", SqlType(TypeName.BIGINT), nullable=False),
    Field("name", SqlType(TypeName.STRING)),
)


@dataclass
class FileFeed:
    """A source over the files at `config.path`."""

    config: FileFeedConfig
    sink: BatchTopic = field(default_factory=BatchTopic)

    def run(self) -> None:
        FileFeedSession(self.config, Silent()).run(self.sink)

    def copy(self) -> Copy:
        return self.sink.topic.copy()

    def rows(self) -> list[dict[str, Any]]:
        found = self.copy().rows
        return [found[key] for key in sorted(found)]


def file_feed(
    path: Path,
    format_: FileFormat = FileFormat.JSON,
    fields: tuple[Field, ...] = USER_FIELDS,
    key: tuple[str, ...] = ("id",),
    **options: str,
) -> FileFeed:
    config = FileFeedConfig(
        path=path,
        source=source_of(format_, options),
        fields=fields,
        primary_key=key,
        kafka=KafkaOptions("nowhere:9092", "topic"),
        partitions=PARTITIONS,
        state_file=path.with_name(f"{path.name}.state.json"),
    )
    return FileFeed(config)


def source_of(format_: FileFormat, options: Mapping[str, str] | None = None) -> FileSource:
    named = {name.replace("_", "-"): text for name, text in (options or {}).items()}
    return FileSource("users", format_, tuple(named.items()))


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> None:
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines))
