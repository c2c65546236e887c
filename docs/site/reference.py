"""Writes what the product says of itself into the pages of the documents, between markers.

A block begins with `<!-- generated: <what> -->` and ends with `<!-- end -->`; `make docs` writes
all of them anew, and a test compares. What the product does not say stands outside of the blocks.
"""

import importlib
import inspect
import json
import pkgutil
import re
import textwrap
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import typer
from prometheus_client.metrics_core import Metric

import joins
import service
import watermark
from docs.site.language import answers
from joins.durable.failpoints import POINTS
from joins.source.chunk_reader import SOURCE_STEPS
from service.api.routes.metrics import RequestCounters, job_metrics, leadership_metrics
from service.cli.main import app
from service.cli.output import ExitCode
from service.config import PREFIX, Settings, accepted
from service.jobs.leadership import Leadership
from service.jobs.store.job import JOB_STATES, JobState, Transitions
from service.jobs.supervise.watch import RUNNER_STATES, RunnerStage
from service.sql.catalog.connectors import CONNECTORS
from service.sql.catalog.option import Option, OptionType
from service.sql.catalog.settings import SETTINGS
from service.sql.expressions.expression_text import FORMS, PARTLY
from service.sql.expressions.functions import REFUSED
from watermark.errors import SluiceError
from watermark.foreign_journal import COPY_STEPS, FEED_STEPS
from watermark.gate import TRANSITIONS

Command = Any  # typer's own classes have no types
Parameter = Any
ROOT = Path(__file__).parents[2]
WIDTH = 120
_BLOCK = re.compile(r"(<!-- generated: ([a-z -]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SYMBOLS = re.compile(r"[^\s()]*[\[\]<>*|_][^\s()]*?(?=[;,.:]*[\s()]|[;,.:]*$)")
_EVERYWHERE = {"--server", "--output", "--help"}  # the page says once what they do


def written(text: str) -> str:
    """A page with its blocks as the product is now."""

    def block(found: re.Match[str]) -> str:
        what, _, which = found[2].partition(" ")
        lines = BLOCKS[what](which) if which else BLOCKS[what]()
        return f"{found[1]}\n" + "\n".join(lines) + f"\n\n{found[3]}"

    return _BLOCK.sub(block, text)


def pages() -> list[Path]:
    """The pages that have blocks."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [path for path in found if _BLOCK.search(path.read_text(encoding="utf-8"))]


def main() -> None:
    """Write each page that is not as it should be."""
    for path in pages():
        before = path.read_text(encoding="utf-8")
        after = written(before)
        if after != before:
            path.write_text(after, encoding="utf-8")


# Form
# --------------------------------------------------------------------------------------------------


def plain(text: str) -> str:
    """Text of the product as Markdown: nothing in it is markup but its backticks."""
    parts = " ".join(text.split()).split("`")
    parts[::2] = [_SYMBOLS.sub(r"`\g<0>`", part) for part in parts[::2]]
    return "`".join(parts)


def entry(name: str, meaning: str, *, note: str = "") -> str:
    """An item of a list, wrapped: a name in its own letters, and what it is."""
    text = f"{name}{note}: {meaning}"
    return _item(text, "- ")


# Settings, options
# --------------------------------------------------------------------------------------------------


def settings() -> Iterator[str]:
    """Each setting with its default and what it accepts."""
    for field, info in Settings.model_fields.items():
        default = info.default
        is_said = isinstance(default, bool | int | float) or (isinstance(default, str) and default)
        value = str(default).lower() if isinstance(default, bool) else f"{default}"
        number = re.sub(r"\.0$", "", value)
        note = f" = `{number if isinstance(default, float) else value}`" if is_said else ""
        meaning = f"{plain(info.description or '')} Accepts {plain(accepted(field))}."
        yield entry(f"`{PREFIX}{field.upper()}`", meaning, note=note)


def options(connector: str) -> Iterator[str]:
    """Each option of a connector; required ones are bold."""
    for option in CONNECTORS[connector].options:
        if option.instead:
            continue
        name = f"**`{option.key}`**" if option.required else f"`{option.key}`"
        note = f" = `{option.default}`" if option.default else ""
        yield entry(name, f"{plain(option.meaning)} {_accepts(option)}", note=note)


def ignored(connector: str) -> Iterator[str]:
    """Options that are accepted with a warning, by what is there instead."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for option in CONNECTORS[connector].options:
        if option.instead:
            only = ", ".join(f"`{choice}`" for choice in option.choices)
            said = f" = {only}" if only else ""
            reason = (option.instead, option.otherwise)
            kinds.setdefault(reason, []).append(f"`{option.key}`{said}")
    for (instead, otherwise), names in kinds.items():
        refused = f" Other values are refused: {plain(otherwise)}" if otherwise else ""
        yield entry(", ".join(names), f"{plain(instead)}.{refused}")


def _accepts(option: Option) -> str:
    if option.type is OptionType.NUMBER:
        above = "" if option.highest == 2**63 - 1 else f" to {option.highest}"
        said = f"{option.lowest}{above}" if above else f"{option.lowest} or more"
    elif option.type is OptionType.MEMORY:
        said = "1 kb to 1 tb, such as 64 mb"
    elif option.type is OptionType.FLAG:
        said = "`true` or `false`"
    elif option.type is OptionType.CHOICE:
        said = ", ".join(f"`{choice}`" for choice in option.choices)
    else:
        said = _form(option)
    return f"Accepts {said}." + (" May be a secret." if _may_be_secret(option) else "")


def _form(option: Option) -> str:
    if option.form == "1 to 1,024 printable characters" and "fields.#" in option.key:
        return "a number"
    return plain(option.form.replace("${secret:name}", "`${secret:name}`"))


def _may_be_secret(option: Option) -> bool:
    return option.reference and "secret" not in option.form


def set_statements() -> Iterator[str]:
    """Each setting of a script."""
    for name, setting in SETTINGS.items():
        meaning = f"{plain(setting.meaning)} Accepts {plain(setting.accepts)}. "
        yield entry(f"`{name}`", f"{meaning}Default: {plain(setting.default)}.")


def functions() -> Iterator[str]:
    """Each function as it is written, by kind."""
    for kind, forms in FORMS.items():
        yield entry(kind, ", ".join(f"`{name}{form}`" for name, form in forms.items()) + ".")


def functions_partly() -> Iterator[str]:
    """What is less than in Flink, by function."""
    for name, what in PARTLY.items():
        yield entry(f"`{name}`", f"{plain(what)}.")


def functions_refused() -> Iterator[str]:
    """What is not there, and what to write instead."""
    names: dict[str, list[str]] = {}
    for name, hint in REFUSED.items():
        names.setdefault(hint, []).append(f"`{name}`")
    for hint, those in names.items():
        yield entry(", ".join(those), plain(hint))


def language() -> Iterator[str]:
    """Each of Flink's statements, clauses and types: whether it is here, and what to write."""
    kinds: list[str] = []
    for kind, form, answer in answers():
        if kind not in kinds:
            yield from [""] * bool(kinds)
            yield from (f"### {kind}", "")
            kinds.append(kind)
        meaning = f"**{answer.state}**." + (f" {plain(answer.text)}" if answer.text else "")
        yield entry(f"`{form}`", meaning)


# Commands
# --------------------------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Each command with what it takes."""
    for index, (words, command) in enumerate(leaves(typer.main.get_command(app), "sluice")):
        given = [p for p in command.params if p.param_type_name == "argument"]
        yield from [""] * bool(index)
        yield f"### {words}"
        yield ""
        yield f"    {' '.join((words, *map(_argument, given), '[OPTIONS]'))}"
        yield ""
        yield from textwrap.wrap(
            plain(command.help or ""), WIDTH, break_on_hyphens=False, break_long_words=False
        )
        items = [_parameter(p) for p in command.params if not _EVERYWHERE & set(p.opts)]
        yield from ["", *items] if items else []


def leaves(command: Command, words: str) -> Iterator[tuple[str, Command]]:
    """Each command that does something, with the words that lead to it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        yield words, command
        return
    for name, one in inner.items():
        yield from leaves(one, f"{words} {name}")


def _argument(parameter: Parameter) -> str:
    name = (parameter.metavar or parameter.name).upper()
    more = "…" if parameter.nargs == -1 else ""
    return f"{name}{more}" if parameter.required else f"[{name}{more}]"


def _parameter(parameter: Parameter) -> str:
    if parameter.param_type_name == "argument":
        return entry(f"`{(parameter.metavar or parameter.name).upper()}`", plain(parameter.help))
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    default = parameter.default
    is_said = isinstance(default, int | float | str) and not isinstance(default, bool)
    value = re.sub(r"\.0$", "", str(default))
    note = f" = `{value}`" if is_said else " (required)" if parameter.required else ""
    return entry(names, plain(parameter.help), note=note)


def exit_codes() -> list[str]:
    """The table in the module of the exit codes."""
    rows = re.findall(r"^ *\| (\d+) \| (.*) \|$", ExitCode.__doc__ or "", re.MULTILINE)
    return [entry(f"`{code}`", meaning) for code, meaning in rows]


# REST, metrics
# --------------------------------------------------------------------------------------------------


def routes() -> Iterator[str]:
    """Each route of the API, with the scope that it needs."""
    document = json.loads((ROOT / "service/api/openapi.json").read_text(encoding="utf-8"))
    by_tag: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            shown = f"{method.upper()} {path.replace('{job_id}', '{id}')}"
            by_tag.setdefault(operation["tags"][0], []).append(_route(shown, operation))
    for index, (tag, lines) in enumerate(sorted(by_tag.items())):
        yield from [""] * bool(index)
        yield f"### Routes: {tag}"
        yield ""
        yield from lines


def _route(shown: str, operation: dict[str, Any]) -> str:
    scopes = [scope for way in operation.get("security", []) for scope in way.get("token", [])]
    note = f" ({scopes[0]})" if scopes else " (no token)"
    first = (operation.get("description") or "").split("\n\n")[0]
    return entry(f"`{shown}`", f"{operation['summary']}. {plain(first)}", note=note)


def metrics() -> Iterator[str]:
    """Each metric of `/metrics`, by its labels."""
    requests = [f for f in RequestCounters().registry.collect() if f.name.startswith("sluice_")]
    by_labels: dict[tuple[str, ...], list[Metric]] = {}
    of_leadership = leadership_metrics(Leadership(leads=True))
    for family in [*job_metrics((), {}), *of_leadership, *requests]:
        labels = getattr(family, "_labelnames", ("method", "route"))
        by_labels.setdefault(tuple(labels), []).append(family)
    for index, (labels, families) in enumerate(by_labels.items()):
        yield from [""] * bool(index)
        names = ", ".join(f"`{label}`" for label in labels)
        yield f"By {names}:" if names else "Of the control plane:"
        yield ""
        for family in families:
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield entry(f"`{name}`", plain(family.documentation), note=f" ({family.type})")


# Errors, failpoints
# --------------------------------------------------------------------------------------------------


def errors() -> Iterator[str]:
    """Each error with its name in the API, and the first line of its docstring."""
    for error in sorted(error_classes(), key=lambda one: one.__name__):
        first = (inspect.getdoc(error) or "").split("\n")[0]
        yield entry(f"`{error.__name__}`", plain(first), note=f" (`{error.fault}`)")


def error_classes() -> set[type[SluiceError]]:
    """Every error class of the product."""
    for package in (watermark, joins, service):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" not in found.name:  # alembic's, they run when they are imported
                importlib.import_module(found.name)
    classes: set[type[SluiceError]] = set()
    pending = [SluiceError]
    while pending:
        error = pending.pop()
        if error.__module__.split(".")[0] in ("watermark", "joins", "service"):
            classes.add(error)
        pending += error.__subclasses__()
    return classes


def state_table(of_what: str) -> Iterator[str]:
    """The states of a machine: what each means, and which may follow."""
    if of_what == "job":
        yield from (_state(JOB_STATES, state) for state in JobState)
    else:
        yield from (_state(RUNNER_STATES, state) for state in RunnerStage)


def _state(table: Transitions[Any], state: StrEnum) -> str:
    names = ", ".join(each for each in type(state) if each in table.following(state))
    return entry(f"`{state}`", f"{table.meaning(state)} It may become: {names or 'nothing'}.")


def failpoints() -> Iterator[str]:
    """Each failpoint, and the modules that pass it."""
    texts = {path: path.read_text(encoding="utf-8") for path in (ROOT / "joins").rglob("*.py")}
    for point, meaning in POINTS.items():
        passing = [path for path, text in texts.items() if f'hit("{point}"' in text]
        modules = sorted(".".join(p.relative_to(ROOT).with_suffix("").parts) for p in passing)
        yield entry(f"`{point}`", f"{plain(meaning)} ({', '.join(f'`{m}`' for m in modules)}).")


# State machines
# --------------------------------------------------------------------------------------------------


def states(machine: str) -> Iterator[str]:
    """The states and events of a machine, and its table: one row a transition."""
    table = MACHINES[machine]
    for kind in (0, 1):
        enum = type(next(iter(table))[kind])
        yield f"{'Events' if kind else 'States'}:\n"
        for name, meaning in _members(enum).items():
            yield entry(f"`{enum[name].value}`", plain(meaning))
        yield ""
    yield "| from | event | to |"
    yield "|---|---|---|"
    order = [*type(next(iter(table))[0])]
    for (state, event), after in sorted(table.items(), key=lambda each: order.index(each[0][0])):
        yield f"| `{state}` | `{event}` | `{after}` |"


def _members(enum: type[StrEnum]) -> dict[str, str]:
    """Member → meaning, from the docstring's attributes."""
    _, _, attributes = (inspect.getdoc(enum) or "").partition("Attributes:\n")
    found: dict[str, str] = {}
    for line in textwrap.dedent(attributes).splitlines():
        name, colon, meaning = line.partition(": ")
        if colon and not line.startswith(" "):
            found[name] = meaning
        else:
            found[[*found][-1]] += " " + line.strip()
    return found


# Promises
# --------------------------------------------------------------------------------------------------


def promises() -> Iterator[str]:
    """Each sentence that promises something, with its tests, by document."""
    listed = tomllib.loads((ROOT / "tests/promises.toml").read_text(encoding="utf-8"))
    for document, lines in listed.items():
        tested = {said: tests for said, tests in lines.items() if isinstance(tests, list)}
        untested = [said for said, why in lines.items() if str(why).startswith("untested: ")]
        if not tested and not untested:
            continue
        yield f"## {document}\n"
        for said, tests in tested.items():
            yield _item(_unmarked(said), "- ")
            for test in tests:
                yield _item(" ".join(f"`{part}`" for part in test.split("::")), "  - ")
        yield from (_item(f"{_unmarked(said)} *No test.*", "- ") for said in untested)
        yield ""


def _unmarked(sentence: str) -> str:
    """A sentence without links, emphasis and the bars of a table."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence).replace("**", "")
    return re.sub(r"\s*\|\s*", " · ", text.strip("| ")) if text.startswith("|") else text


def _item(text: str, bullet: str) -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=bullet,
        subsequent_indent=" " * len(bullet),
        break_long_words=False,
        break_on_hyphens=False,
    )


BLOCKS: dict[str, Callable[..., Iterable[str]]] = {
    "settings": settings,
    "options": options,
    "ignored": ignored,
    "set-statements": set_statements,
    "functions": functions,
    "functions-partly": functions_partly,
    "functions-refused": functions_refused,
    "language": language,
    "commands": commands,
    "exit-codes": exit_codes,
    "routes": routes,
    "metrics": metrics,
    "errors": errors,
    "failpoints": failpoints,
    "state-table": state_table,
    "promises": promises,
    "states": states,
}
MACHINES: dict[str, Mapping[tuple[StrEnum, StrEnum], StrEnum]] = {
    "job-phase": TRANSITIONS,
    "topic-journal": FEED_STEPS,
    "topic-copy": COPY_STEPS,
    "table-copy": SOURCE_STEPS,
}

if __name__ == "__main__":
    main()
