"""Windows on the workers: rows into parts of windows, parts and state into results.

What is right is defined in `watermark.reference.windows`; tests prove these kernels equal to its
operator.
"""

from joins.kernels.windows.advance import WatermarkAdvance
from joins.kernels.windows.firing import (
    Fired,
    fire,
    reads,
)
from joins.kernels.windows.partials import Partials, partials
from joins.kernels.windows.projection import Projected, project
from joins.kernels.windows.spec import WindowSpec
from joins.kernels.windows.state import LATE, compact, partial_schema, state_schema

__all__ = [
    "LATE",
    "Fired",
    "Partials",
    "Projected",
    "WatermarkAdvance",
    "WindowSpec",
    "compact",
    "fire",
    "partial_schema",
    "partials",
    "project",
    "reads",
    "state_schema",
]
