"""What a control plane is: the one that leads, or a standby that waits for its turn."""

import threading
from enum import StrEnum

from service.errors import StandbyError
from service.jobs.store.leader_row import LeaderRecord


class ControlPlaneRole(StrEnum):
    """What a control plane does."""

    LEADER = "leader"  # takes changes and looks after the jobs
    STANDBY = "standby"  # reads, and takes over


class Leadership:
    """The role of this control plane and who leads; safe to use from several threads.

    Args:
        leads: from the beginning and for good; a store on SQLite has one control plane.
    """

    def __init__(self, *, leads: bool) -> None:
        self._changing = threading.Lock()
        self._term = 0 if leads else None
        self._record: LeaderRecord | None = None

    @property
    def role(self) -> ControlPlaneRole:
        return ControlPlaneRole.STANDBY if self._term is None else ControlPlaneRole.LEADER

    @property
    def term(self) -> int:
        return 0 if self._record is None else self._record.term

    @property
    def leader_url(self) -> str:
        record = self._record
        return "" if record is None or record.is_vacant else record.url

    def lead(self, term: int) -> None:
        with self._changing:
            self._term = term

    def stand_by(self) -> None:
        with self._changing:
            self._term = None

    def know(self, record: LeaderRecord) -> None:
        self._record = record

    def require(self) -> None:
        """Return if this control plane leads.

        Raises:
            StandbyError: another one does, or none at the moment.
        """
        if self._term is not None:
            return
        url = self.leader_url
        if url:
            raise StandbyError(
                f'control plane is a standby; the one at "{url}" leads',
                hint=f"Ask {url}; if nobody answers there, ask again here: a standby takes over "
                "within 30 s.",
                leader_url=url,
            )
        raise StandbyError(
            "control plane is a standby, and none leads at the moment",
            hint="Ask again in a moment: a standby takes over within 30 s.",
        )
