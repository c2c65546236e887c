"""A condition of a job's rows: what must be so before they come out, and what was seen of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Condition:
    """One thing that must be so before rows come out.

    Attributes:
        name: stable, in kebab case, such as `gate-open`.
        about: the table, channel, topic or part that it is about; None for the whole job.
        met: None if it is not known yet.
        evidence: what was seen, with numbers, as a sentence without a full stop.
        hint: what an operator can do; None where waiting is all there is.
    """

    name: str
    about: str | None
    met: bool | None
    evidence: str
    hint: str | None = None
