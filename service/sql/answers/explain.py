"""A plan as text. The same plan gives the same lines; no credential is shown."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from joins.plan.formats import formats_explained
from joins.plan.plan import (
    DEFAULT_MAX_FUTURE_MS,
    Aggregate,
    AggregateKind,
    BoundedMode,
    DatagenField,
    DatagenSource,
    Dimension,
    DimensionJoin,
    Field,
    JoinPlan,
    JoinType,
    KafkaSource,
    KeyPair,
    ProbeSource,
    SortKey,
    TableStream,
    TopicSource,
    TopN,
    Unnest,
    WatermarkSpec,
    Windowing,
    WindowKind,
    end_explained,
)
from joins.plan.stream_topics import index_of
from joins.plan.types import Call
from service.sql.expressions.expression_text import expression_text
from service.sql.grammar.type_parser import type_text


def watermark_lines(plan: JoinPlan) -> Iterator[str]:
    probe = plan.probe
    if probe.watermark is not None:
        yield f"WATERMARK {probe.alias}.{_watermark(probe.watermark)}"
    for dimension in plan.dimensions:
        if dimension.watermark is not None:
            yield f"WATERMARK {dimension.name}.{_watermark(dimension.watermark)}"


def waiting_lines(plan: JoinPlan) -> Iterator[str]:
    probe = plan.probe
    if any(join.time is not None for join in plan.joins):
        tables = [probe.alias, *(d.name for d in plan.dimensions if d.watermark is not None)]
        yield f"WAIT until the watermark of {' and '.join(tables)} has reached the record's time"
        newest = [d.name for d in plan.dimensions if d.watermark is None]
        if newest:
            yield f"NEWEST rows of {', '.join(newest)}, which has no WATERMARK"
        if probe.watermark is not None and probe.watermark.after_backlog:
            yield _switched(plan)


def _switched(plan: JoinPlan) -> str:
    held = [d.name for d in plan.dimensions if d.watermark is not None]
    if held:
        return f"WAIT for {', '.join(held)} behind the backlog, too: its WATERMARK goes on"
    return "JOIN at once behind the backlog: nothing waits, nothing is late"


def late_lines(plan: JoinPlan) -> Iterator[str]:
    probe = plan.probe
    if probe.watermark is None:
        return
    if plan.window is not None and plan.window.time is not None:
        yield f"EMIT windows when the watermark has reached their end{_lateness(plan.window)}"
        if probe.watermark.after_backlog:
            yield "EMIT windows behind the backlog when the clock has reached their end"
    late = "the job's own table" if probe.late_records_path is None else probe.late_records_path
    yield f"LATE records INTO {late}"


def window_lines(window: Windowing | None) -> Iterator[str]:
    if window is None:
        return
    time = "the clock" if window.time is None else expression_text(window.time)
    parts = [f"size {window.size_ms} ms"]
    if window.kind is WindowKind.SESSION:
        parts = [f"gap {window.size_ms} ms"]
    if window.slide_ms is not None:
        step = "step" if window.kind is WindowKind.CUMULATE else "slide"
        parts.append(f"{step} {window.slide_ms} ms")
    if window.offset_ms:
        parts.append(f"offset {window.offset_ms} ms")
    yield f"WINDOW {window.kind} of {time}, {', '.join(parts)}"
    keys = [f"{expression_text(key.expression)} AS {key.name}" for key in window.keys]
    yield "GROUP BY " + ", ".join(["window_start", "window_end", *keys])
    aggregates = [_aggregate(item) for item in window.aggregates if item is not window.rows]
    if aggregates:
        yield "AGGREGATE " + ", ".join(aggregates)
    if window.rows is not None:
        yield "ROWS " + ", ".join(_kept_columns(window.rows))
    if window.having is not None:
        yield f"HAVING {expression_text(window.having)}"
    if window.rank is not None:
        yield from _rank_lines(window.rank)


def _kept_columns(rows: Aggregate) -> Iterator[str]:
    assert isinstance(rows.argument, Call), "it makes a ROW"
    members = rows.argument.type.members
    for value, member in zip(rows.argument.arguments, members, strict=True):
        yield f"{expression_text(value)} AS {member.name}"


def _rank_lines(rank: TopN) -> Iterator[str]:
    partition = ", ".join(["window_start", "window_end", *map(expression_text, rank.partition)])
    order = ", ".join(_sorted_by(key) for key in rank.order)
    text = f"ROW_NUMBER {rank.first} TO {rank.last} PARTITION BY {partition}"
    newest = ", the newest of equal rows first" if rank.newest_first else ""
    yield text + (f" ORDER BY {order}" if order else "") + newest
    if rank.having is not None:
        yield f"KEEP {expression_text(rank.having)}"


def _sorted_by(key: SortKey) -> str:
    nulls = "" if key.nulls_last == key.descending else f" NULLS {_NULLS[key.nulls_last]}"
    return expression_text(key.expression) + " DESC" * key.descending + nulls


_NULLS = {True: "LAST", False: "FIRST"}


def _aggregate(item: Aggregate) -> str:
    text = item.function.value
    if item.argument is not None:
        distinct = "DISTINCT " if item.distinct else ""
        separator = ""
        if item.function is AggregateKind.LISTAGG:
            separator = ", '" + item.separator.replace("'", "''") + "'"
        text = f"{text}({distinct}{expression_text(item.argument)}{separator})"
    if item.where is not None:
        text += f" FILTER (WHERE {expression_text(item.where)})"
    return f"{text}:{type_text(item.type)} AS {item.name}"


def _lateness(window: Windowing) -> str:
    if not window.lateness_ms:
        return ""
    return f", and again for each record that is late by {window.lateness_ms} ms at the most"


def _watermark(watermark: WatermarkSpec) -> str:
    parts = [f"{watermark.rowtime} AS {expression_text(watermark.expression)}"]
    if watermark.on_event:
        parts.append("on-event")
    if watermark.idle_timeout_ms is not None:
        parts.append(f"idle after {watermark.idle_timeout_ms} ms")
    if watermark.max_wait_ms is not None:
        parts.append(f"by the clock after {watermark.max_wait_ms} ms")
    if watermark.after_backlog:
        parts.append("processing time behind its backlog")
    if watermark.max_future_ms != DEFAULT_MAX_FUTURE_MS:
        parts.append(f"at most {watermark.max_future_ms} ms ahead of the clock")
    return ", ".join(parts)


def explain(plan: JoinPlan) -> list[str]:
    """The plan as lines: probe, joins in order, filter, output, sink, settings."""
    settings = [f"SET {key} = {value}" for key, value in plan.settings]
    if not plan.more_inserts:
        return [*_insert(plan), *settings]
    inserts = (
        [f"INSERT {number}", *_insert(insert)]
        for number, insert in enumerate(plan.inserts, start=1)
    )
    return [*(line for lines in inserts for line in lines), *settings]


@dataclass(frozen=True, slots=True)
class _Node:
    text: str
    inputs: tuple["_Node", ...] = ()

    def lines(self, first: str = "", rest: str = "") -> Iterator[str]:
        yield first + self.text
        for at, node in enumerate(self.inputs, start=1):
            corner, side = ("+- ", "   ") if at == len(self.inputs) else (":- ", ":  ")
            yield from node.lines(rest + corner, rest + side)


def tree(plan: JoinPlan) -> list[str]:
    """The plan as a tree of Flink's operators, the sink first; then waits and settings."""
    settings = [f"SET {key} = {value}" for key, value in plan.settings]
    drawn = [
        [*_sink_node(each).lines(), *waiting_lines(each), *late_lines(each)]
        for each in plan.inserts
    ]
    return [*(line for lines in drawn for line in lines), *settings]


def _sink_node(plan: JoinPlan) -> _Node:
    output = ", ".join(f"{expression_text(c.expression)} AS {c.name}" for c in plan.output)
    where = [] if plan.where is None else [("where", expression_text(plan.where))]
    node = _joined_node(plan)
    if plan.window is not None:
        if where:
            node = _node("Calc", where, node)
        node, where = _window_node(plan.window, node), []
    node = _node("Calc", [("select", output), *where], node)
    return _node("Sink", [("table", plan.sink_table), ("connector", plan.sink.explained)], node)


def _node(name: str, parts: Iterable[tuple[str, str]], *inputs: _Node) -> _Node:
    return _Node(f"{name}({', '.join(f'{key}=[{text}]' for key, text in parts)})", inputs)


def _window_node(window: Windowing, node: _Node) -> _Node:
    lines = list(window_lines(window))
    at = next((n for n, line in enumerate(lines) if line.startswith("ROW_NUMBER")), len(lines))
    node = _node("WindowAggregate", [("window", "; ".join(lines[:at]))], node)
    return _node("WindowRank", [("rank", "; ".join(lines[at:]))], node) if lines[at:] else node


def _joined_node(plan: JoinPlan) -> _Node:
    dimensions = {dimension.name: dimension for dimension in plan.dimensions}
    probe = plan.probe
    node = _node("TableSourceScan", _scan(f"{probe.table} AS {probe.alias}", *_probe_parts(probe)))
    if probe.watermark is not None:
        node = _node("WatermarkAssigner", [("watermark", _watermark(probe.watermark))], node)
    for unnest in plan.unnests:
        node = _node("Correlate", [("unnest", _unnest(unnest))], node)
    for join in plan.joins:
        dimension = dimensions[join.dimension]
        columns, source = ", ".join(_columns(dimension)), dimension.source.explained
        key = [("key", ", ".join(dimension.declared_key))] if dimension.declared_key else []
        name = f"{join.dimension} AS {join.alias}"
        table = _node("TableSourceScan", [*_scan(name, source, columns), *key])
        if dimension.watermark is not None:
            assigned = [("watermark", _watermark(dimension.watermark))]
            table = _node("WatermarkAssigner", assigned, table)
        time = "PROCTIME()" if join.time is None else expression_text(join.time)
        kind = "LeftOuterJoin" if join.join_type is JoinType.LEFT else "InnerJoin"
        parts = [("joinType", kind), ("on", _condition(join)), ("asOf", time)]
        node = _node("TemporalJoin", parts, node, table)
    return node


def _scan(name: str, source: str, columns: str) -> list[tuple[str, str]]:
    return [("table", name), ("connector", source), ("fields", columns)]


def _insert(plan: JoinPlan) -> list[str]:
    dimensions = {dimension.name: dimension for dimension in plan.dimensions}
    names = (column.name for column in plan.output if not column.nullable)
    text = ", ".join(names)
    return [
        f"FROM {_probe(plan.probe)}",
        *watermark_lines(plan),
        *map(_unnest, plan.unnests),
        *(_join(join, dimensions[join.dimension]) for join in plan.joins),
        *waiting_lines(plan),
        *([] if plan.where is None else [f"WHERE {expression_text(plan.where)}"]),
        *window_lines(plan.window),
        *late_lines(plan),
        "SELECT " + ", ".join(f"{expression_text(c.expression)} AS {c.name}" for c in plan.output),
        f"INTO {plan.sink_table} {plan.sink.explained}" + (f" NOT NULL {text}" if text else ""),
    ]


def _probe(probe: ProbeSource) -> str:
    source, columns = _probe_parts(probe)
    return f"{probe.table} AS {probe.alias} {source} [{columns}]"


def _probe_parts(probe: ProbeSource) -> tuple[str, str]:
    columns = [_field(field) for field in probe.fields]
    columns += [
        f"{field.name} {type_text(field.type)} METADATA {field.key}"
        for field in probe.metadata_fields
    ]
    columns += [
        f"{field.name} = {expression_text(field.expression)}" for field in probe.computed_fields
    ]
    source = probe.source
    if isinstance(source, KafkaSource):
        text = _kafka_source(source, probe)
    elif isinstance(source, TableStream):
        text = f"{source.table.explained} changes by {', '.join(source.changes_by)}"
    else:
        text = _datagen(source)
    if probe.newest_by:
        text += f" newest by {', '.join(probe.newest_by)}"
    return text, ", ".join(columns)


def _field(field: Field) -> str:
    return f"{field.name} {type_text(field.type)}" + ("" if field.nullable else " NOT NULL")


def _places(
    source: KafkaSource, probe: ProbeSource, offsets: Iterable[tuple[int, int]]
) -> list[str]:
    own = [(n, o) for n, o in offsets if not probe.reads or index_of(n) in probe.reads]
    return [f"{source.topics.place(number)}:{offset}" for number, offset in own]


def _kafka_source(source: KafkaSource, probe: ProbeSource) -> str:
    parts = [source.kafka.explained(_topics(source, probe)), source.startup_mode.value]
    if source.startup_timestamp_ms is not None:
        parts.append(f"{source.startup_timestamp_ms} ms")
    parts += _places(source, probe, source.startup_offsets)
    if source.bounded_mode is not BoundedMode.UNBOUNDED:
        most = f" or {source.bounded_records} records a partition"
        end = end_explained(source, _places(source, probe, source.bounded_offsets))
        parts.append(end + ("" if source.bounded_records is None else most))
    if source.max_records_per_batch is not None:
        parts.append(f"{source.max_records_per_batch} records")
    if source.max_bytes_per_batch is not None:
        parts.append(f"{source.max_bytes_per_batch} bytes")
    parts += formats_explained(source.value, source.key)
    if source.changes_by:
        parts.append(f"changes by {', '.join(source.changes_by)}")
    text = f"kafka({', '.join(parts)})"
    return text if source.history is None else f"{source.history.explained} then {text}"


def _topics(source: KafkaSource, probe: ProbeSource) -> str:
    if source.topic_pattern is None:
        return "; ".join(probe.topic_names)
    looked = "" if source.discovery_ms is None else f", looked for every {source.discovery_ms} ms"
    return f"topics like {source.topic_pattern}{looked}"


def _datagen(source: DatagenSource) -> str:
    parts = [f"{source.rows_per_second}/s"]
    if source.number_of_rows is not None:
        parts.append(f"{source.number_of_rows} rows")
    parts += [text for field in source.fields if (text := _generator(field)) is not None]
    return f"datagen({', '.join(parts)})"


def _generator(field: DatagenField) -> str | None:
    shown = {
        "min": field.minimum,
        "max": field.maximum,
        "start": field.start,
        "end": field.end,
        "length": field.length,
        "as": field.expression,
        "skew": field.skew,
        "null-rate": field.null_rate or None,
        "max-past": f"{field.max_past_ms} ms" if field.max_past_ms else None,
    }
    limits = [f"{key} {value}" for key, value in shown.items() if value is not None]
    return f"{field.name} {field.generator.value} {' '.join(limits)}" if limits else None


def _unnest(unnest: Unnest) -> str:
    kind = "CROSS" if unnest.join_type is JoinType.INNER else unnest.join_type.value
    return f"{kind} JOIN UNNEST({expression_text(unnest.value)}) AS {unnest.alias}"


def _join(join: DimensionJoin, dimension: Dimension) -> str:
    names = ", ".join(dimension.declared_key)
    key = f"key {names}" if names else "no key"
    return (
        f"{join.join_type.value} JOIN {join.dimension} AS {join.alias} "
        f"{dimension.source.explained} "
        f"[{', '.join(_columns(dimension))}; "
        f"{key}] ON {_condition(join)}"
        + ("" if join.time is None else f" AS OF {expression_text(join.time)}")
    )


def _condition(join: DimensionJoin) -> str:
    conditions = [_key(join.alias, key) for key in join.keys]
    if join.condition is not None:
        conditions.append(expression_text(join.condition))
    return " AND ".join(conditions)


def _columns(dimension: Dimension) -> Iterator[str]:
    source = dimension.source
    times = source.metadata if isinstance(source, TopicSource) else ()
    origins = {each.name: f" METADATA {each.key}" for each in times}
    for item in source.computed if isinstance(source, TopicSource) else ():
        origins[item.name] = f" AS {expression_text(item.expression)}"
    for field in dimension.declared_fields:
        yield _field(field) + origins.get(field.name, "")


def _key(alias: str, key: KeyPair) -> str:
    """The equality as written; then the lookup expression, if a cast may lose a value."""
    column, value = f"{alias}.{key.dimension_column}", expression_text(key.probe)
    if key.computed is not None:
        column = expression_text(key.computed)
    if not key.null_safe:
        return f"{value} = {column}"
    if key.uncast is None:
        return f"{value} IS NOT DISTINCT FROM {column}"
    return f"{expression_text(key.uncast)} IS NOT DISTINCT FROM {column} (key {value})"
