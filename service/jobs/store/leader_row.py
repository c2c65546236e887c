"""Who leads, as a row of the store, and the names of the locks that PostgreSQL keeps for us.

The row outlives the lock: a successor learns from it whether its predecessor has gone in order, and
whoever asks a standby learns where to ask.
"""

from dataclasses import dataclass

import sqlalchemy as sa

LOCK_SPACE = 0x534C4349  # "SLCI": our advisory locks among those of others in the database
LEADER, MIGRATION, NAMES = "leader", "migration", "names"
LEADERSHIP = sa.Table(
    "leadership",
    sa.MetaData(),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("term", sa.BigInteger),
    sa.Column("url", sa.Text),
    sa.Column("since_ms", sa.BigInteger),
    sa.Column("is_vacant", sa.Boolean),
    sa.Column("data_dir_id", sa.String(36)),
)


@dataclass(frozen=True, slots=True)
class LeaderRecord:
    """The newest control plane that has led.

    Attributes:
        term: one more with each that takes over; 0 before the first.
        url: where it answers.
        since_ms: when it took over.
        is_vacant: it has ended its runners and given leadership up; or there was none yet.
    """

    term: int
    url: str
    since_ms: int
    is_vacant: bool


def lock_key(name: str) -> sa.ColumnElement[int]:
    """The second half of a lock's key: of each schema, for a database may have several stores."""
    return sa.func.hashtext(sa.func.concat(sa.func.current_schema(), ".", name))


def record_of(row: sa.RowMapping) -> LeaderRecord:
    return LeaderRecord(row["term"], row["url"], row["since_ms"], row["is_vacant"])
