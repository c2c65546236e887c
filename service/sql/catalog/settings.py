"""SET statements: settings of a job, and replacements for Flink's settings."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from joins.kernels.calendar.zones import UTC, known_zone
from joins.plan.durations import duration_ms
from joins.plan.errors import NameHint, nearest
from joins.plan.plan import JoinPlan
from service.sql.catalog.option import WITHOUT_EFFECT
from service.sql.grammar.syntax import OptionNode, SetOption
from service.sql.text.script import Edit, Script, SqlError

_ONLY = {
    "table.sql-dialect": ("default", "scripts are in Flink's own dialect"),
    "table.exec.legacy-cast-behaviour": ("disabled", "a cast that fails is an error, as in Flink"),
}


def of_flink(key: str) -> str | None:
    """The replacement for a setting of Flink's; None for other settings."""
    if key in _ONLY:
        return _ONLY[key][1]
    for reason, patterns in WITHOUT_EFFECT["settings"].items():
        if any(re.fullmatch(pattern, key) for pattern in patterns):
            return reason
    return None


def only_value(key: str) -> str | None:
    return _ONLY[key][0] if key in _ONLY else None


MIN_TRIGGER_INTERVAL_MS = 100
MAX_TRIGGER_INTERVAL_MS = 3_600_000
_OWN = "sluice."
PIPELINE_NAME = "pipeline.name"
TRIGGER_INTERVAL = "sluice.trigger-interval"
RUNTIME_MODE = "execution.runtime-mode"
SOURCE_IDLE_TIMEOUT = "table.exec.source.idle-timeout"
LOCAL_TIME_ZONE = "table.local-time-zone"
ALLOW_LATENESS = "table.exec.emit.allow-lateness"
MAX_LATENESS_MS = 365 * 86_400_000
BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of a script; `normal` returns the value for a plan, or None to refuse it."""

    meaning: str
    default: str
    accepts: str
    normal: Callable[[str], str | None]


def _name(value: str) -> str | None:
    return value if 1 <= len(value) <= 128 and value.isprintable() and value.strip() else None


def _interval(value: str) -> str | None:
    milliseconds = duration_ms(value)
    if milliseconds is None:
        return None
    in_range = MIN_TRIGGER_INTERVAL_MS <= milliseconds <= MAX_TRIGGER_INTERVAL_MS
    return f"{milliseconds} ms" if in_range else None


def _up_to(most_ms: int) -> Callable[[str], str | None]:
    def normal(value: str) -> str | None:
        milliseconds = duration_ms(value)
        return None if milliseconds is None or milliseconds > most_ms else f"{milliseconds} ms"

    return normal


def _one_of(*accepted: str) -> Callable[[str], str | None]:
    known = {value.lower(): value for value in accepted}
    return lambda value: known.get(value.lower())


def _zone(value: str) -> str | None:
    place = UTC if value.upper() in ("DEFAULT", UTC, "GMT", "Z") else known_zone(value)
    return None if place is None else UTC if place in (UTC, 0) else value


SETTINGS: dict[str, Setting] = {
    PIPELINE_NAME: Setting(
        "Name of the job.", "the sink's table", "1 to 128 printable characters", _name
    ),
    TRIGGER_INTERVAL: Setting(
        "Shortest time between the starts of two micro-batches.",
        "the service's SLUICE_BUILD_TRIGGER_MS and SLUICE_PROBE_TRIGGER_MS",
        "100 ms to 1 h, such as 500 ms or 2 s",
        _interval,
    ),
    RUNTIME_MODE: Setting(
        "With batch the stream is bounded: the job ends when all up to its end is joined.",
        "streaming",
        "streaming or batch",
        _one_of("streaming", BATCH),
    ),
    SOURCE_IDLE_TIMEOUT: Setting(
        "After which a partition without records does not hold back the watermark.",
        "0 ms, which is never",
        "0 s to 1 d, such as 30 s",
        _up_to(86_400_000),
    ),
    ALLOW_LATENESS: Setting(
        "How long a window takes late records after it was emitted; each gives an update.",
        "0 ms",
        "0 s to 365 d, such as 1 min",
        _up_to(MAX_LATENESS_MS),
    ),
    LOCAL_TIME_ZONE: Setting(
        "In which instants have dates and clocks, and texts of them are read and written.",
        "UTC",
        "a name such as Europe/Berlin, or an offset such as +02:00",
        _zone,
    ),
}


def read_setting(script: Script, statement: SetOption) -> tuple[str, str]:
    node = statement.option
    setting = SETTINGS[node.key]
    value = setting.normal(node.value)
    if value is None or "${" in value:
        raise _not_accepted(script, node, setting.accepts)
    return node.key, value


def without_effect(script: Script, statement: SetOption) -> str | None:
    """A full sentence about a setting that has no effect here; None for those that have one.

    Raises SqlError for a name that is nearly one of ours.
    """
    node = statement.option
    if node.key in SETTINGS:
        return None
    instead = of_flink(node.key)
    if instead is None:
        check_setting_name(script, node.key, node.at)
        return (
            f'Setting "{node.key[:100]}" has no effect: it is none of this service, whose settings '
            f"are {', '.join(SETTINGS)}."
        )
    only = only_value(node.key)
    if only is not None and node.value.lower() != only:
        raise _not_accepted(script, node, only)
    return f'Setting "{node.key}" has no effect: {instead}.'


def check_setting_name(script: Script, key: str, at: int) -> None:
    if key in SETTINGS or of_flink(key) is not None:
        return
    own = key.rpartition(".")[0] in {name.rpartition(".")[0] for name in SETTINGS}
    close = nearest(key, SETTINGS)
    if close is not None and (own or "." not in key or key.startswith(_OWN)):
        quotes = 2 * (script.text[at : at + 1] == "'")
        edit = Edit(at, at + len(key) + quotes, f"'{close}'", sure=False)
        raise _unknown(script, key, at, NameHint(close), edit)
    if key.startswith(_OWN):
        raise _unknown(script, key, at, "Remove it; settings are " + ", ".join(SETTINGS) + ".")


def _unknown(script: Script, key: str, at: int, hint: str, edit: Edit | None = None) -> SqlError:
    return script.error(at, f'unknown setting "{key[:100]}"', hint=hint, edit=edit)


def _not_accepted(script: Script, node: OptionNode, accepts: str) -> SqlError:
    return script.error(
        node.value_at,
        f'setting "{node.key}" is "{node.value[:100]}", expected {accepts}',
        hint=f"Give {accepts}.",
        edit=Edit(script.text.upper().rindex("SET", 0, node.at), node.end, "", sure=False),
    )


def trigger_interval_ms(plan: JoinPlan) -> int | None:
    value = dict(plan.settings).get(TRIGGER_INTERVAL)
    return None if value is None else int(value.removesuffix(" ms"))
