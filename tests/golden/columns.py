"""What a golden table is made of: columns with the values of its rows, as SQL literals."""

from collections.abc import Sequence
from dataclasses import dataclass

VALUES = 5  # typical, least, greatest, odd; the fifth is typical again, to be changed and deleted


@dataclass(frozen=True)
class Column:
    """A column of a type under test.

    Attributes:
        name: its name.
        database_type: as the database declares it.
        sql: the type with which a script declares it; "" where none fits.
        values: four SQL literals: a typical value, the least, the greatest, an odd one.
        truth: an expression over the column, `{}`, that gives the value's text.
    """

    name: str
    database_type: str
    sql: str
    values: tuple[str, str, str, str]
    truth: str = "CAST({} AS CHAR)"

    def literal(self, row: int) -> str:
        return self.values[(row - 1) % 4]


@dataclass(frozen=True)
class Table:
    """A table with the column `id` as its first; its statements once all connectors stream.

    Attributes:
        key: its primary key; "" for none.
        rows: values of the rows that are there before the snapshot, `id` included.
        steps: statements in the order in which they are carried out.
    """

    name: str
    columns: tuple[Column, ...]
    key: str
    rows: tuple[str, ...]
    steps: tuple[str, ...]

    def ddl(self) -> str:
        columns = ", ".join(f"{c.name} {c.database_type}" for c in self.columns)
        key = f", PRIMARY KEY ({self.key})" if self.key else ""
        return f"CREATE TABLE {self.name} ({columns}{key})"

    def inserts(self) -> list[str]:
        return [f"INSERT INTO {self.name} VALUES ({row})" for row in self.rows]

    def truths(self) -> str:
        texts = ", ".join(c.truth.format(c.name) for c in self.columns)
        return f"SELECT {texts} FROM {self.name} ORDER BY id"


def values(columns: Sequence[Column], identity: int, row: int) -> str:
    rest = ("NULL" if row == 0 else column.literal(row) for column in columns[1:])
    return ", ".join([str(identity), *rest])


def changes(columns: Sequence[Column], table: str) -> tuple[str, ...]:
    """Inserts of each row again, updates to and from NULL, a changed key, a delete."""
    to_least = ", ".join(f"{c.name} = {c.literal(2)}" for c in columns[1:])
    to_null = ", ".join(f"{c.name} = NULL" for c in columns[1:])
    inserts = [
        f"INSERT INTO {table} VALUES ({values(columns, 10 + row, row)})" for row in (1, 2, 3, 4, 0)
    ]
    return (
        *inserts,
        f"UPDATE {table} SET {to_least} WHERE id = 1",
        f"UPDATE {table} SET {to_null} WHERE id = 2",
        f"UPDATE {table} SET {to_least} WHERE id = 6",
        f"UPDATE {table} SET id = 33 WHERE id = 3",
        f"DELETE FROM {table} WHERE id = 4",
    )


def typed(name: str, columns: tuple[Column, ...]) -> Table:
    rows = [values(columns, row, row) for row in range(1, VALUES + 1)]
    return Table(name, columns, "id", (*rows, values(columns, 6, 0)), changes(columns, name))


def pairs(name: str, number: Column, text: Column) -> tuple[Table, ...]:
    c = (number, text)
    return (
        Table(
            f"{name}_two_keys",
            c,
            "id, label",
            ("1, 'a'", "1, 'b'"),
            (
                f"INSERT INTO {name}_two_keys VALUES (2, 'a')",
                f"UPDATE {name}_two_keys SET label = 'c' WHERE id = 2",
                f"DELETE FROM {name}_two_keys WHERE id = 1 AND label = 'a'",
            ),
        ),
        Table(
            f"{name}_no_key",
            c,
            "",
            ("1, 'a'", "2, NULL"),
            (
                f"INSERT INTO {name}_no_key VALUES (3, 'c')",
                f"UPDATE {name}_no_key SET label = 'z' WHERE id = 1",
                f"DELETE FROM {name}_no_key WHERE id = 2",
            ),
        ),
        Table(
            f"{name}_truncated",
            c,
            "id",
            ("1, 'a'", "2, 'b'"),
            (f"TRUNCATE TABLE {name}_truncated", f"INSERT INTO {name}_truncated VALUES (3, 'c')"),
        ),
        Table(
            f"{name}_altered",
            c,
            "id",
            ("1, 'a'",),
            (
                f"INSERT INTO {name}_altered VALUES (2, 'b')",
                f"ALTER TABLE {name}_altered ADD COLUMN later INT",
                f"INSERT INTO {name}_altered VALUES (3, 'c', 7)",
                f"ALTER TABLE {name}_altered DROP COLUMN label",
                f"INSERT INTO {name}_altered VALUES (4, 8)",
            ),
        ),
        Table(f"{name}_empty", c, "id", (), ()),
        Table(f"{name}_one_row", c, "id", ("1, 'a'",), ()),
    )
