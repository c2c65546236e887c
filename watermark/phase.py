"""The two phases of a job and the only steps between them.

LOAD: the build side copies, probe records are held. JOIN: each record is joined when it comes. The
step from LOAD to JOIN happens once in the life of a checkpoint; a restart stays where the
checkpoint is.

>>> advance(Phase.LOAD, PhaseEvent.GATE_OPENED).name
'JOIN'
"""

from enum import StrEnum

from watermark.errors import InvalidTransitionError


class Phase(StrEnum):
    """Where a job is."""

    LOAD = "LOAD"
    JOIN = "JOIN"


class PhaseEvent(StrEnum):
    """What happens to a job's phase."""

    GATE_OPENED = "gate_opened"
    RESTORED = "restored"


TRANSITIONS: dict[tuple[Phase, PhaseEvent], Phase] = {
    (Phase.LOAD, PhaseEvent.GATE_OPENED): Phase.JOIN,
    (Phase.LOAD, PhaseEvent.RESTORED): Phase.LOAD,
    (Phase.JOIN, PhaseEvent.RESTORED): Phase.JOIN,
}


def advance(phase: Phase, event: PhaseEvent) -> Phase:
    """The phase after `event`.

    Raises:
        InvalidTransitionError: the table has no such step; opening twice is one.
    """
    following = TRANSITIONS.get((phase, event))
    if following is None:
        raise InvalidTransitionError(
            f'phase "{phase}" has no transition for event "{event}"',
            hint="Report this as a defect with the job's event log: a gate opens once.",
        )
    return following
