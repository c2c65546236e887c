"""The documents say what there is: settings, options, errors, commands, modules, files, links."""

import ast
import dataclasses
import importlib.util
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from mkdocs.commands.build import build
from mkdocs.config import load_config

from joins.durable.checkpoint import Checkpoint
from joins.durable.failpoints import ACTIONS, POINTS
from joins.kernels.probe.probe import ROW_METADATA
from joins.sinks.kafka import HEADER_NAMES
from service.cli.main import app
from service.cli.output import ExitCode
from service.config import PREFIX, Settings
from service.demo.run import DemoResult
from service.jobs.store.job import JobState
from service.jobs.store.layout import JobLayout
from service.jobs.store.runner_files import CHOICES
from service.security.tokens import CA_FILE, TOKEN, TOKEN_FILE
from service.sql.answers.answers import plan_declarations
from service.sql.answers.explain import explain
from service.sql.catalog.connectors import CONNECTORS
from service.sql.catalog.settings import SETTINGS
from service.sql.expressions.expression_text import NAMES
from service.sql.planner.planner import plan_script
from tests.support.modules import module

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "deploy/README.md",
    "deploy/RUNBOOK.md",
    *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").rglob("*.md")),
]
TEXTS = {name: (ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS}
README, ARCHITECTURE = TEXTS["README.md"], TEXTS["ARCHITECTURE.md"]
SETTINGS_PAGE = TEXTS["docs/reference/settings.md"]
CONNECTORS_PAGE = TEXTS["docs/reference/connectors.md"]
STATEMENTS_PAGE = TEXTS["docs/reference/statements.md"]
COMMANDS_PAGE = TEXTS["docs/reference/commands.md"]
FUNCTIONS_PAGE = TEXTS["docs/reference/functions.md"]
ERRORS_PAGE = TEXTS["docs/reference/errors.md"]
CONTRACTS = TEXTS["docs/reference/contracts.md"] + TEXTS["docs/reference/failpoints.md"]
OWN_SCRIPT = TEXTS["docs/how-to/own-kafka-and-database.md"]
RUNBOOK, CONTRIBUTING = TEXTS["deploy/RUNBOOK.md"], TEXTS["CONTRIBUTING.md"]
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
CLIENTS = {"kafka", "pymysql", "pymysqlreplication", "deltalake"}
PLAYS_THE_OUTSIDE = {"service/embedded/database.py", "service/demo/shop.py"}
MAX_LINE = 120
MOST_LINES_OF_README = 150
SCRIPTS = [
    (name, script)
    for name, text in TEXTS.items()
    for script in re.findall(r"^```sql[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
]


def section(document: str, heading: str) -> str:
    """The text under the heading that starts with `heading`, up to the next of its level."""
    level = heading.split(" ")[0]
    start = document.index(f"\n{heading}") + 1
    ends = [document.find(f"\n{'#' * n} ", start + 1) for n in range(1, len(level) + 1)]
    found = [end for end in ends if end > 0]
    return document[start : min(found)] if found else document[start:]


def table(text: str) -> dict[str, list[str]]:
    """Rows of the tables of `text`: what is in the first pair of backticks → cells."""
    rows = {}
    for line in text.splitlines():
        if line.startswith("|") and (name := re.search(r"`([^`]+)`", line)):
            cells = re.split(r"(?<!\\)\|", line.strip("|"))
            rows[name[1]] = [cell.strip() for cell in cells]
    return rows


def without_fences(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def entries(text: str) -> dict[str, str]:
    items = re.findall(r"^- .*(?:\n  .*)*", text, re.MULTILINE)
    named = ((re.match(r"- (?:\*\*)?`([^`]+)`", item), item) for item in items)
    return {name[1]: item for name, item in named if name}


def generated(page: str) -> str:
    return page.partition("<!-- generated: ")[2].partition("<!-- end -->")[0]


# The reference is what the product says
# --------------------------------------------------------------------------------------------------


def test_the_generated_parts_of_the_pages_are_those_of_the_product() -> None:
    reference = module("docs/site/reference.py")
    pages = {path: path.read_text(encoding="utf-8") for path in reference.pages()}
    blocks = {
        name for text in pages.values() for name in re.findall(r"<!-- generated: (\S+)", text)
    }
    assert blocks == set(reference.BLOCKS)
    stale = [path.name for path, text in pages.items() if reference.written(text) != text]
    assert stale == [], "run `make docs`, and commit what it writes"


# Settings, options, errors, commands
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", Settings.model_fields)
def test_each_setting_is_documented_with_its_default(field: str) -> None:
    said = entries(SETTINGS_PAGE)[f"{PREFIX}{field.upper()}"]
    default = Settings.model_fields[field].default
    value = re.match(r"- `\w+` = `([^`]*)`: \w", said)
    if isinstance(default, bool):
        assert value is not None
        assert value[1] == str(default).lower()
    elif isinstance(default, int | float):
        assert value is not None
        assert float(value[1]) == default
    elif isinstance(default, str) and default:
        assert value is not None
        assert value[1] == default
    else:
        assert re.match(r"- `\w+`: \w", said)


def test_no_document_names_a_setting_that_does_not_exist() -> None:
    named = set(re.findall(r"\bSLUICE_[A-Z_]+[A-Z]\b", "".join(TEXTS.values())))
    known = {f"{PREFIX}{field.upper()}" for field in Settings.model_fields}
    unknown = named - known - {"SLUICE_SERVER", "SLUICE_SECRET", TOKEN, TOKEN_FILE, CA_FILE}
    assert [name for name in sorted(unknown) if not name.startswith("SLUICE_SECRET_")] == []


@pytest.mark.parametrize("connector", CONNECTORS)
def test_each_option_is_documented_with_its_default(connector: str) -> None:
    found = entries(section(CONNECTORS_PAGE, f"## `{connector}`"))
    options = {o.key: o for o in CONNECTORS[connector].options if not o.instead}
    ignored = {o.key for o in CONNECTORS[connector].options if o.instead}
    text = section(CONNECTORS_PAGE, f"## `{connector}`")
    assert [key for key in ignored if f"`{key}`" not in text] == []
    found = {key: line for key, line in found.items() if key not in ignored}
    assert set(found) == set(options)
    for key, option in options.items():
        assert not option.default or f"` = `{option.default}`: " in found[key], key
        assert found[key].startswith("- **") == option.required, key


def test_each_set_statement_is_documented() -> None:
    assert set(entries(section(STATEMENTS_PAGE, "## SET"))) == set(SETTINGS)


def test_each_function_is_documented_and_no_other() -> None:
    forms = re.findall(r"`([A-Z0-9_]+)[^`]*`", generated(FUNCTIONS_PAGE))
    assert sorted(forms) == sorted(NAMES)


def test_the_page_of_errors_names_every_error_and_no_other() -> None:
    classes = module("docs/site/reference.py").error_classes()
    assert set(entries(generated(ERRORS_PAGE))) == {error.__name__ for error in classes}


def leaves() -> dict[str, Any]:
    """Each command that does something, by its words."""
    found = {}
    for verb, command in COMMANDS.items():
        group = getattr(command, "commands", None)
        found |= (
            {f"{verb} {name}": leaf for name, leaf in group.items()} if group else {verb: command}
        )
    return found


@pytest.mark.parametrize("words", leaves())
def test_each_command_is_documented_with_options_that_it_has(words: str) -> None:
    said = section(COMMANDS_PAGE, f"### sluice {words}\n")
    known = {
        option
        for parameter in leaves()[words].params
        for option in (*parameter.opts, *parameter.secondary_opts)
        if option.startswith("--")
    }
    named = set(re.findall(r"--[a-z-]+", "\n".join(entries(said).values())))
    assert known - {"--server", "--output"} <= named <= known


def test_no_other_command_is_documented() -> None:
    assert set(re.findall(r"^### sluice (.*)$", COMMANDS_PAGE, re.MULTILINE)) == set(leaves())


@pytest.mark.parametrize("command", leaves().values(), ids=leaves())
def test_the_help_of_a_command_is_plain_text(command: Any) -> None:
    assert command.rich_markup_mode is None


def test_each_exit_code_is_documented() -> None:
    codes = entries(section(COMMANDS_PAGE, "## Exit codes"))
    assert set(codes) == {str(code.value) for code in ExitCode}


def test_the_runbook_has_an_entry_for_each_cause_that_may_be_acknowledged() -> None:
    entries = section(RUNBOOK, "## Stalls that wait for you")
    for cause in CHOICES:
        assert f"sluice acknowledge JOB {cause} " in entries, cause
        assert f"\n### {cause}\n" in entries


def test_documents_name_no_command_that_does_not_exist() -> None:
    documents = "".join(TEXTS.values())
    named = re.findall(r"(?:`|bin/|^    )sluice ([a-z-]+)", documents, re.MULTILINE)
    assert named
    assert set(named) <= set(COMMANDS)
    assert set(re.findall(r"\bsluice (jobs [a-z]+)", documents)) <= set(leaves())


TYPED = [
    (name, line)
    for name, text in TEXTS.items()
    for line in re.findall(r"^ {4,}(?:[.\w]+/)*sluice ([a-z].*?)(?: +#.*)?$", text, re.MULTILINE)
    if "OPTIONS" not in line
]


@pytest.mark.parametrize("typed", sorted({line for _, line in TYPED}))
def test_commands_in_documents_have_the_options_that_they_are_given(typed: str) -> None:
    words = typed.partition("|")[0].split()
    found = leaves().get(" ".join(words[:2])) or leaves().get(words[0])
    assert found is not None
    known = {option for parameter in found.params for option in parameter.opts}
    given = {word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-z][a-z-]*.*", word)}
    assert given <= known | {"--help"}


def test_every_make_target_is_documented_and_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    assert targets
    assert {t for t in targets if f"make {t}" not in README + CONTRIBUTING} == set()
    named = re.findall(r"(?:`|^    )make (?:-s )?([a-z]+)", "".join(TEXTS.values()), re.MULTILINE)
    assert set(named) <= targets


# What the documents promise
# --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "script"), SCRIPTS, ids=[n for n, _ in SCRIPTS])
def test_every_script_of_the_documents_is_planned(name: str, script: str) -> None:
    kept = [text for page, text in SCRIPTS if page == name and "CREATE SHARED TABLE" in text]
    catalog = [one.entry for text in kept for one in plan_declarations(text, ())[0]]
    assert script in kept or plan_script(script, catalog=catalog).plan


def test_the_first_script_is_planned_as_its_case_says() -> None:
    script = re.search(r"^```sql\n(CREATE TABLE.*?)^```", OWN_SCRIPT, re.MULTILINE | re.DOTALL)
    assert script is not None
    planned = plan_script(script[1])
    case = ROOT / "tests/service/sql/cases/documents_example.sql"
    expected = case.read_text(encoding="utf-8").splitlines()[0].removeprefix("-- plan: ")
    assert " | ".join(explain(planned.plan)) == expected
    assert planned.warnings == ()


@pytest.mark.parametrize("name", [*HEADER_NAMES, *ROW_METADATA.names])
def test_the_reference_names_what_the_output_has(name: str) -> None:
    assert f"`{name}`" in TEXTS["docs/reference/outputs.md"]


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(DemoResult)])
def test_what_the_demo_prints_is_documented(name: str) -> None:
    assert f"`{name}`" in TEXTS["docs/how-to/run-the-demo.md"]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES_OF_README


def test_addresses_that_documents_name_exist() -> None:
    openapi = json.loads((ROOT / "service/api/openapi.json").read_text(encoding="utf-8"))
    known = {path.replace("{job_id}", "{id}") for path in openapi["paths"]}
    named = set(re.findall(r"/v1/[a-z/{}:_-]*[a-z}]", "".join(TEXTS.values())))
    assert named
    assert named <= known


# Architecture
# --------------------------------------------------------------------------------------------------


def packages() -> list[str]:
    found = {path.parent for name in ("watermark", "joins", "service") for path in files(name)}
    return sorted(str(path.relative_to(ROOT)) for path in found if "migrations" not in path.parts)


def files(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


def test_the_map_of_packages_says_what_their_docstrings_say() -> None:
    said = {name: cells[1] for name, cells in table(section(ARCHITECTURE, "## Packages")).items()}
    written = {}
    for package in packages():
        tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
        written[f"{package}/"] = (ast.get_docstring(tree) or "").partition("\n")[0]
    assert said == written


@pytest.mark.parametrize("package", packages())
def test_a_package_has_no_more_modules_than_a_stranger_looks_through(package: str) -> None:
    assert len([path for path in (ROOT / package).glob("*.py") if path.stem[0] != "_"]) <= 20


def test_modules_that_documents_name_exist() -> None:
    named = set(
        re.findall(r"`((?:watermark|joins|service)(?:\.[a-z_]+)+)`", "".join(TEXTS.values()))
    )
    assert named
    assert [name for name in sorted(named) if importlib.util.find_spec(name) is None] == []


def test_every_file_of_a_job_is_documented() -> None:
    contracts = section(CONTRACTS, "## A job's directory")
    layout, checkpoint = JobLayout(Path("job")), Checkpoint(Path("job/checkpoint"))
    properties = [name for name, value in vars(JobLayout).items() if isinstance(value, property)]
    paths = [getattr(layout, name) for name in properties]
    paths += [checkpoint.source_file("<dimension>"), checkpoint.cdc_file("<dimension>")]
    paths.append(checkpoint.pins_directory)
    missing = [p for p in paths if str(p.relative_to("job")) not in contracts]
    assert missing == []


def test_every_json_file_that_code_names_is_documented() -> None:
    sources = [p for name in ("joins", "service/jobs", "service/wiring") for p in files(name)]
    sources += [ROOT / "service/config.py", ROOT / "service/security/resolution.py"]
    texts = [path.read_text(encoding="utf-8") for path in sources]
    named = {name for text in texts for name in re.findall(r'"([a-z_]+\.jsonl?)"', text)}
    assert {"meta.json", "phase.json", "progress.json"} <= named
    assert {name for name in named if f"{name}`" not in CONTRACTS} == set()


@pytest.mark.parametrize("name", [*POINTS, *ACTIONS, *JobState])
def test_failpoints_and_states_are_documented(name: str) -> None:
    assert re.search(rf"\b{name}\b", ARCHITECTURE + CONTRACTS)


def test_invariants_and_decisions_are_numbered_without_gaps() -> None:
    invariants = re.findall(r"^\| I(\d+) \|", ARCHITECTURE, re.MULTILINE)
    assert invariants == [str(n) for n in range(1, 13)]
    decisions = sorted((ROOT / "docs/adr").glob("[0-9]*.md"))
    replaced = re.findall(r"^\| ADR-(\d{4}) \|", TEXTS["docs/adr/history.md"], re.MULTILINE)
    numbers = sorted([*(path.name[:4] for path in decisions), *replaced])
    assert numbers == [f"{n:04}" for n in range(1, len(numbers) + 1)]
    for path in decisions:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# ADR-{path.name[:4]}: ")
        assert text.count("\n") <= 40, path
        assert re.findall(r"^## (.*)$|^Status: (accepted|replaced by ADR-\d{4})$", text, re.M) == [
            ("", "accepted"),
            *((part, "") for part in ("Context", "Decision", "Cost", "What would change it")),
        ], path
        assert f"]({path.name})" in TEXTS["docs/adr/index.md"]


def test_decisions_that_are_cited_exist() -> None:
    texts = [
        *TEXTS.values(),
        *(p.read_text() for p in files("joins")),
        *map(Path.read_text, files("service")),
    ]
    cited = {number for text in texts for number in re.findall(r"ADR-(\d{4})", text)}
    replaced = set(re.findall(r"^\| ADR-(\d{4})", TEXTS["docs/adr/history.md"], re.MULTILINE))
    assert cited <= {path.name[:4] for path in (ROOT / "docs/adr").glob("*.md")} | replaced


def imported(path: Path) -> set[str]:
    """The clients that a module imports."""
    text = path.read_text(encoding="utf-8")
    if not any(client in text for client in CLIENTS):
        return set()
    nodes = list(ast.walk(ast.parse(text)))
    names = [a.name for n in nodes if isinstance(n, ast.Import) for a in n.names]
    names += [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    return {name.split(".")[0] for name in names} & CLIENTS


def test_only_adapters_import_clients_of_other_systems() -> None:
    others = [
        str(path.relative_to(ROOT))
        for package in ("watermark", "joins", "service")
        for path in files(package)
        if imported(path) and ROOT / "joins/adapters" not in path.parents
    ]
    assert set(others) <= PLAYS_THE_OUTSIDE


# Form
# --------------------------------------------------------------------------------------------------


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", without_fences(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", without_fences(TEXTS[document])):
        if "://" in target:
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / document).parent / name if name else ROOT / document
        assert path.exists(), target
        assert not anchor or anchor in anchors(path.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_of_the_project_exist(document: str) -> None:
    tops = r"service|joins|watermark|tests|deploy|\.ci"
    named = re.findall(rf"`((?:\.\./)?(?:{tops})/[\w./-]*)`", TEXTS[document])
    homes = (ROOT, (ROOT / document).parent)
    assert [name for name in named if not any((home / name).exists() for home in homes)] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_are_of_no_particular_machine(document: str) -> None:
    addresses = module(".ci/addresses.py")
    assert addresses.ADDRESS.search(TEXTS[document].encode()) is None
    assert re.search(r"(?<![\w.~>}])/(?:work|root|home|tmp|Users)/", TEXTS[document]) is None


@pytest.mark.parametrize("document", DOCUMENTS)
def test_lines_fit_on_a_screen(document: str) -> None:
    lines = enumerate(TEXTS[document].splitlines(), 1)
    assert [number for number, line in lines if len(line) > MAX_LINE] == []


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` makes it: strictly, so that a link that leads nowhere is an error."""
    directory = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "docs/site/mkdocs.yml"), site_dir=str(directory), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    return directory


def test_each_document_is_a_page_of_the_site(site: Path) -> None:
    outside = module("docs/site/hooks.py").OUTSIDE
    pages = {outside.get(name, name.removeprefix("docs/")) for name in DOCUMENTS}
    files = (re.sub(r"/README\.md$", "/index.md", page) for page in pages)  # as MkDocs names them
    missing = [page for page in files if not (site / page).with_suffix(".html").exists()]
    assert missing == []


def test_pages_fetch_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(
        r"<(?:link|script|img|iframe|source)\b[^>]*\b(?:href|src)=[\"']?(?:https?:)?//"
    )
    styles = re.compile(r"(?:url\([\"']?|@import [\"']?)(?:https?:)?//")
    assert len(list(site.rglob("*.html"))) > len(DOCUMENTS) // 2
    loading = [p.name for p in site.rglob("*.html") if loads.search(p.read_text(encoding="utf-8"))]
    assert loading == []
    styled = [p.name for p in site.rglob("*.css") if styles.search(p.read_text(encoding="utf-8"))]
    assert styled == []
