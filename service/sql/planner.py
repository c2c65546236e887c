"""From a script to the frozen plan of its one INSERT."""

from dataclasses import dataclass, replace

from joins.plan import (
    Dimension,
    JoinPlan,
    KafkaOptions,
    KafkaSource,
    MysqlCdcSource,
)
from service.sql.catalog import (
    InlineSecret,
    Table,
    build_table,
    inline_secret_name,
)
from service.sql.errors import SqlError
from service.sql.insert_planner import InsertPlanner
from service.sql.masking import masked_comments
from service.sql.parser import parse
from service.sql.script import Script
from service.sql.settings import PIPELINE_NAME, read_setting
from service.sql.syntax import (
    CreateTable,
    Insert,
    SetOption,
    Statement,
)


@dataclass(frozen=True, slots=True)
class PlannedScript:
    """A plan that can be stored, what it needs and what its author should know.

    Attributes:
        plan: holds references in place of inline secrets.
        inline_secrets: to be stored under their names before the job starts.
        warnings: full sentences.
    """

    plan: JoinPlan
    inline_secrets: tuple[InlineSecret, ...]
    warnings: tuple[str, ...]


def plan(script: str, *, name: str | None = None) -> JoinPlan:
    """Plan a script; inline secrets stay in the plan's options, but not in its `sql`.

    Args:
        script: Flink SQL: CREATE TABLE and SET statements and one INSERT INTO.
        name: of the job; wins over SET 'pipeline.name'.

    Raises:
        SqlError: the script cannot be planned; the error points at the place.
    """
    return _guarded(script, name)[0]


def plan_script(script: str, *, name: str | None = None) -> PlannedScript:
    """Plan a script for the job store: inline secrets become references.

    Raises:
        SqlError: as `plan`.
    """
    planned, context = _guarded(script, name)
    return PlannedScript(
        plan=_with_references(planned, context.secrets),
        inline_secrets=context.secrets,
        warnings=context.warnings,
    )


@dataclass(frozen=True, slots=True)
class _Context:
    """What planning found besides the plan."""

    secrets: tuple[InlineSecret, ...]
    warnings: tuple[str, ...]


def _guarded(text: str, name: str | None) -> tuple[JoinPlan, _Context]:
    try:
        return _plan(Script(text), name)
    except RecursionError as exc:
        raise SqlError(
            "the script is nested too deeply", hint="Split the expression or flatten it."
        ) from exc


def _plan(script: Script, name: str | None) -> tuple[JoinPlan, _Context]:
    declared = _declare(script, parse(script))
    planner = InsertPlanner(script, declared.tables, declared.insert)
    settings = tuple(sorted(declared.settings.items()))
    job_name = name or declared.settings.get(PIPELINE_NAME) or declared.insert.table.text
    result = planner.plan(job_name, _redacted(script, declared.inline_secrets), settings)
    used = {result.probe.table, result.sink_table, *(d.name for d in result.dimensions)}
    secrets = tuple(
        s for name in declared.tables if name in used for s in declared.tables[name].inline_secrets
    )
    warnings = tuple(
        f'The inline secret of table option "{secret.node.key}" is kept as {secret.reference}; '
        "write such a reference yourself."
        for secret in secrets
    )
    return result, _Context(secrets, warnings + planner.warnings)


@dataclass(slots=True)
class _Declared:
    """What the statements before the INSERT declare, and the INSERT itself.

    Attributes:
        inline_secrets: of all tables, also of those that were there IF NOT EXISTS.
    """

    tables: dict[str, Table]
    settings: dict[str, str]
    insert: Insert
    inline_secrets: tuple[InlineSecret, ...]


def _declare(script: Script, statements: tuple[Statement, ...]) -> _Declared:
    tables: dict[str, Table] = {}
    settings: dict[str, str] = {}
    secrets: list[InlineSecret] = []
    insert: Insert | None = None
    for statement in statements:
        if insert is not None:
            raise script.error(
                statement.at,
                "a statement after the INSERT INTO",
                hint="Put it in front; a script has exactly one INSERT INTO, at its end.",
            )
        if isinstance(statement, CreateTable):
            secrets += _declare_table(script, tables, statement).inline_secrets
        elif isinstance(statement, SetOption):
            key, value = read_setting(script, statement)
            settings[key] = value
        else:
            insert = statement
    if insert is None:
        raise script.error(
            max(len(script.text.rstrip()) - 1, 0),
            "the script has no INSERT INTO",
            hint="End it with INSERT INTO sink SELECT … FROM probe JOIN dimension ….",
        )
    return _Declared(tables, settings, insert, tuple(secrets))


def _declare_table(script: Script, tables: dict[str, Table], node: CreateTable) -> Table:
    table = build_table(script, node)
    if node.name.text not in tables:
        tables[node.name.text] = table
    elif not node.if_not_exists:
        raise script.error(
            node.name.at,
            f'table "{node.name.text}" is declared twice',
            hint="Rename one of the two.",
        )
    return table


def _redacted(script: Script, secrets: tuple[InlineSecret, ...]) -> str:
    """The script with inline secrets replaced by their references, and none in its comments."""
    text = masked_comments(script.text, [secret.value for secret in secrets])
    for secret in sorted(secrets, key=lambda s: s.node.value_at, reverse=True):
        text = f"{text[: secret.node.value_at]}'{secret.reference}'{text[secret.node.end :]}"
    return text


def _with_references(result: JoinPlan, secrets: tuple[InlineSecret, ...]) -> JoinPlan:
    names = {secret.name: secret for secret in secrets}

    def replaced(table: str, key: str, value: str) -> str:
        secret = names.get(inline_secret_name(table, key))
        return value if secret is None else secret.reference

    def kafka(table: str, options: KafkaOptions) -> KafkaOptions:
        properties = tuple((k, replaced(table, k, v)) for k, v in options.properties)
        return replace(options, properties=properties)

    def dimension(found: Dimension) -> Dimension:
        source = found.source
        if not isinstance(source, MysqlCdcSource):
            return found
        password = replaced(found.name, "password", source.password)
        return replace(found, source=replace(source, password=password))

    dimensions = tuple(dimension(d) for d in result.dimensions)
    probe, sink = result.probe, result.sink
    if isinstance(probe.source, KafkaSource):
        source = replace(probe.source, kafka=kafka(probe.table, probe.source.kafka))
        probe = replace(probe, source=source)
    if sink.kind == "kafka":
        sink = replace(sink, kafka=kafka(result.sink_table, sink.kafka))
    return replace(result, dimensions=dimensions, probe=probe, sink=sink)
