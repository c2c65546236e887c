"""Statements that the grammar reads: frozen nodes; `at` is an offset into the script."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from joins.plan.plan import JoinType, WindowKind
from service.sql.grammar.expression_nodes import Name, Node, Reference, TypeNode

_PREVIEW_ROWS = 100


@dataclass(frozen=True, slots=True)
class PhysicalColumn:
    """`name TYPE [NOT NULL]`."""

    name: Name
    type: TypeNode
    nullable: bool


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """`name TYPE METADATA [FROM 'key'] [VIRTUAL]`; the key is the name when FROM is missing."""

    name: Name
    type: TypeNode
    key: str
    virtual: bool
    key_at: int
    end: int = 0


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """`name AS expression`; the expression stands from `start` to `end` in the script."""

    name: Name
    expression: Node
    start: int
    end: int


ColumnNode = PhysicalColumn | MetadataColumn | ComputedColumn


@dataclass(frozen=True, slots=True)
class WatermarkNode:
    """`WATERMARK FOR column AS expression`, which stands from `start` to `end` in the script."""

    column: Name
    expression: Node
    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class OptionNode:
    """`'key' = 'value'`; `end` is where the value's literal ends.

    `inside` is None unless the value is a part of another option's literal: where that begins, and
    what stands for it in WITH, before and behind the value's own literal.
    """

    key: str
    value: str
    at: int
    value_at: int
    end: int
    inside: tuple[int, str, str] | None = None


class Feature(Enum):
    """What CREATE TABLE … LIKE copies beyond the physical columns."""

    CONSTRAINTS = auto()
    GENERATED = auto()
    METADATA = auto()
    OPTIONS = auto()
    PARTITIONS = auto()
    WATERMARKS = auto()


class Merging(Enum):
    """How CREATE TABLE … LIKE treats a feature of the other table."""

    INCLUDING = auto()
    EXCLUDING = auto()
    OVERWRITING = auto()


@dataclass(frozen=True, slots=True)
class Like:
    """`LIKE table [(INCLUDING …)]`, complete: each feature with its merging."""

    table: Name
    merging: dict[Feature, Merging]


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE with its connector options; a `shared` table is one copy for many jobs.

    `bare_key`: PRIMARY KEY is without NOT ENFORCED. `clauses` have no effect; `options` stand from
    `options_at` to `options_end`, parentheses included. The list of columns ends at `columns_end`;
    that is 0 without one.
    """

    name: Name
    if_not_exists: bool
    columns: tuple[ColumnNode, ...]
    primary_key: tuple[Name, ...]
    options: tuple[OptionNode, ...]
    at: int
    like: Like | None = None
    watermark: WatermarkNode | None = None
    bare_key: bool = False
    partitioned: tuple[Name, ...] = ()
    temporary: bool = False
    shared: bool = False
    clauses: tuple[str, ...] = ()
    options_at: int = 0
    options_end: int = 0
    columns_end: int = 0


@dataclass(frozen=True, slots=True)
class SetOption:
    """SET 'key' = 'value'."""

    option: OptionNode
    at: int


@dataclass(frozen=True, slots=True)
class Reset:
    """RESET ['key']: one setting, or all without a key."""

    key: str | None
    at: int


@dataclass(frozen=True, slots=True)
class Drop:
    """DROP TABLE or VIEW, by `what`."""

    what: str
    name: Name
    if_exists: bool
    at: int


@dataclass(frozen=True, slots=True)
class Star:
    """`*` or `alias.*`."""

    relation: Name | None
    at: int


@dataclass(frozen=True, slots=True)
class SelectItem:
    """An expression of the select list."""

    expression: Node
    alias: Name | None


@dataclass(frozen=True, slots=True)
class Relation:
    """A table, view or `query` in parentheses in FROM or JOIN, with its alias and OPTIONS hint."""

    table: Name
    alias: Name
    options: tuple[OptionNode, ...] = ()
    query: CreateView | None = None


@dataclass(frozen=True, slots=True)
class SnapshotNode:
    """`LATERAL SNAPSHOT(input => TABLE t, …)` of Flink 2.4, without its table.

    `arguments` has the constant arguments under their names in lower case.
    """

    on_time: Name | None
    arguments: dict[str, Node]
    at: int


@dataclass(frozen=True, slots=True)
class TemporalJoinClause:
    """`JOIN table FOR SYSTEM_TIME AS OF time AS alias ON condition`, or LATERAL TABLE(table(time)).

    `time` is None for PROCTIME() and for LATERAL SNAPSHOT. `condition` is None after a comma and
    with ON TRUE: it is in WHERE. `using` has the columns of USING, which `condition` compares.
    """

    relation: Relation
    join_type: JoinType
    time: Reference | None
    condition: Node | None
    at: int
    snapshot: SnapshotNode | None = None
    using: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class UnnestClause:
    """`CROSS JOIN UNNEST(value) AS alias (columns)`, or LEFT JOIN … ON TRUE.

    Without `columns`, the names are a ROW's fields, or that of the alias, or EXPR$0.
    """

    value: Node
    alias: Name
    columns: tuple[Name, ...] | None
    join_type: JoinType
    at: int


JoinNode = TemporalJoinClause | UnnestClause


@dataclass(frozen=True, slots=True)
class WindowNode:
    """A window function over the first table, as in `FROM TABLE(TUMBLE(TABLE t, …))`.

    `time` is the column in DESCRIPTOR; `intervals` has SIZE, SLIDE, STEP, GAP and OFFSET by name.
    """

    kind: WindowKind
    time: Reference
    intervals: dict[str, Node]
    partition: tuple[Node, ...]
    at: int


@dataclass(frozen=True, slots=True)
class GroupBy:
    """GROUP BY, with its HAVING; `sets` are the keys of each grouping set, empty without any."""

    keys: tuple[Node, ...]
    having: Node | None
    at: int
    sets: tuple[tuple[Node, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class OrderItem:
    """An expression of ORDER BY."""

    expression: Node
    descending: bool
    at: int


@dataclass(frozen=True, slots=True)
class HintNode:
    """A hint behind SELECT, such as `LOOKUP(…)`."""

    name: str
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """A query over one probe and its dimensions.

    Attributes:
        names: the queries of WITH, in order; each may use earlier ones.
        others: the further queries of UNION ALL.
        order: ORDER BY behind all of UNION ALL.
    """

    items: tuple[SelectItem | Star, ...]
    probe: Relation
    joins: tuple[JoinNode, ...]
    where: Node | None
    at: int
    limit: int | None = None
    limit_at: int = 0
    window: WindowNode | None = None
    group_by: GroupBy | None = None
    names: tuple[CreateView, ...] = ()
    others: tuple[Select, ...] = ()
    order: tuple[OrderItem, ...] = ()
    hints: tuple[HintNode, ...] = ()

    @property
    def preview_rows(self) -> int:
        return self.limit or _PREVIEW_ROWS


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW; the query stands from `start` to `end` in the script."""

    name: Name
    if_not_exists: bool
    columns: tuple[Name, ...] | None
    select: Select
    at: int
    start: int
    end: int
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class Insert:
    """INSERT INTO table [(columns)] query [ON CONFLICT DO word]; `conflict` is the word."""

    table: Name
    columns: tuple[Name, ...] | None
    select: Select
    at: int
    options: tuple[OptionNode, ...] = ()
    conflict: str = ""


@dataclass(frozen=True, slots=True)
class CreateTableAs:
    """CREATE TABLE … AS query: the table has the columns of the query."""

    table: CreateTable
    select: Select
    at: int


@dataclass(frozen=True, slots=True)
class Namespace:
    """USE, CREATE or DROP (`verb`) of a CATALOG or DATABASE (`what`), with IF [NOT] EXISTS."""

    verb: str
    what: str
    name: Name
    if_exists: bool
    options: tuple[OptionNode, ...]
    at: int


@dataclass(frozen=True, slots=True)
class WithoutEffect:
    """A statement that no job needs; `why` is the end of a sentence.

    `function` is what CREATE FUNCTION declares.
    """

    name: str
    why: str
    at: int
    function: Name | None = None


@dataclass(frozen=True, slots=True)
class StatementSet:
    """EXECUTE STATEMENT SET BEGIN … END."""

    inserts: tuple[Insert, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Explain:
    """EXPLAIN of what a job would run."""

    statement: JobStatement
    at: int


@dataclass(frozen=True, slots=True)
class Describe:
    """DESCRIBE of a table or view."""

    name: Name
    at: int


@dataclass(frozen=True, slots=True)
class Show:
    """SHOW of a list, or of the CREATE statement of `name`."""

    what: str
    at: int
    name: Name | None = None


@dataclass(frozen=True, slots=True)
class ShowSettings:
    """SET without a key."""

    at: int


@dataclass(frozen=True, slots=True)
class StopJob:
    """STOP JOB 'id'."""

    job_id: str
    at: int


JobStatement = Insert | Select | StatementSet | CreateTableAs
Declaration = CreateTable | CreateView | Drop | SetOption | Reset | Namespace | WithoutEffect
Question = Explain | Describe | Show | ShowSettings
Statement = Declaration | JobStatement | Question | StopJob
