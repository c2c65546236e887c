"""Answers in a notebook: HTML with escaped text, and rows as data frames."""

import html
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from service.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from service.schemas.jobs import DimensionView, JobDetail, ListedJob

_SHOWN = 20
_CELL = 200
Facts = Iterable[tuple[str, str]]


def html_text(value: object) -> str:
    """A value as escaped HTML text on one line, cut, control characters replaced."""
    shown = "NULL" if value is None else str(value)
    cut = shown if len(shown) <= _CELL else shown[:_CELL] + "…"
    return html.escape("".join(char if char.isprintable() else "�" for char in cut))


def html_table(columns: Sequence[str], rows: Iterable[Sequence[object]], note: str = "") -> str:
    heads = "".join(f"<th>{html_text(column)}</th>" for column in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html_text(cell)}</td>' for cell in row)}</tr>" for row in rows
    )
    below = f"<p>{html_text(note)}</p>" if note else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>{below}"


def html_of_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, more: bool) -> str:
    note = f"the first {len(rows)} rows" if more else f"{len(rows)} rows"
    return html_table(columns, ([row.get(name) for name in columns] for row in rows), note)


def html_of_jobs(listed: Iterable["ListedJob"]) -> str:
    columns = ("name", "state", "records/s", "held", "lag", "reason", "id")
    rows = (
        (
            job.name,
            job.state if job.status is None else job.status.word,
            _known(job.records_per_s, "{:.1f}"),
            _known(job.held_records, "{:,}"),
            _known(job.lag_records, "{:,}"),
            job.reason if job.status is None else job.status.sentence,
            job.id,
        )
        for job in listed
    )
    return html_table(columns, rows)


def html_of_job(detail: "JobDetail") -> str:
    facts = (
        f"<th>{html_text(name)}</th><td>{html_text(fact)}</td>" for name, fact in _facts(detail)
    )
    rows = "".join(f"<tr>{each}</tr>" for each in (*facts, *map(_copy, detail.dimensions)))
    return f"<table><tbody>{rows}</tbody></table>"


def _facts(detail: "JobDetail") -> Facts:
    yield "job", f"{detail.name} ({detail.id})"
    status = detail.status
    yield "state", detail.state if status is None else status.word
    yield "reason", detail.reason if status is None else status.sentence
    hint = detail.error.hint if status is None and detail.error else status and status.remedy
    if hint:
        yield "hint", hint
    probe = detail.probe
    if probe is not None:
        yield (
            "stream",
            f"{probe.topic}: {_known(probe.held_records, '{:,}')} held, "
            + (f"lag {_known(probe.lag_records, '{:,}')}"),
        )
        rate = _known(probe.records_per_s, "{:.1f}")
        yield "joined", f"{probe.joined_records:,}, {rate} records/s"
        letters = probe.open_dead_letters
        yield "dead letters", f"{probe.dead_letters if letters is None else letters:,}"
    for sink in detail.sinks:
        yield "sink", f"{sink.table} ({sink.connector})"


def _copy(dimension: "DimensionView") -> str:
    done, total = dimension.snapshot.rows_done, dimension.snapshot.rows_total
    bar = f'<progress value="{done:d}" max="{max(1, total or done):d}"></progress>'
    version = _known(dimension.changelog_version)
    rows = f"{done:,} rows, version {version}"
    return f"<th>{html_text(dimension.name)}</th><td>{bar} {html_text(rows)}</td>"


def _known(value: object, form: str = "{}") -> str:
    return "-" if value is None else form.format(value)


def notebook_display() -> Callable[[str], None] | None:
    """A function that replaces the HTML of the running cell; None outside a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)  # type: ignore[no-untyped-call] # it has no types
    return lambda shown: handle.update(HTML(shown))  # type: ignore[no-untyped-call] # as above


class Tabular(ABC):
    """Rows that are fetched on demand; each conversion fetches all of them."""

    @abstractmethod
    def to_arrow(self) -> "pa.Table":
        """All of it as one Arrow table."""

    def to_pandas(self) -> "pd.DataFrame":
        """A pandas data frame with Arrow types, so NULL stays NULL."""
        import pandas as pd

        return self.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)

    def to_polars(self) -> Any:  # noqa: ANN401 (polars is none of our packages)
        """A polars data frame; raises ConfigError if polars is not installed."""
        try:
            import polars
        except ImportError as exc:
            raise ConfigError(
                "polars is not installed",
                hint="Install it with pip install polars, or use to_arrow().",
            ) from exc
        return polars.from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        rows = self._first(_SHOWN + 1)
        return html_of_rows(
            rows.slice(0, _SHOWN).to_pylist(), rows.column_names, more=rows.num_rows > _SHOWN
        )

    def _first(self, most: int) -> "pa.Table":
        return self.to_arrow().slice(0, most)
