"""What a round of kills around a seam has been through, and what came of it."""

from dataclasses import dataclass, field

SEAM = 0.5  # the files are the first half of the way, the topic the second


@dataclass
class Round:
    """One table or stream and its job."""

    kills: list[tuple[float, str, float]] = field(default_factory=list)
    early: int = 0
    lost: int = 0
    duplicate: int = 0
    wrong: int = 0
    told: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        return not (self.early or self.lost or self.duplicate or self.wrong or self.told)
