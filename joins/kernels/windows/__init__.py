"""Windows on the workers: rows into parts of windows, parts and state into results.

What is right is defined in `watermark.windows`; tests prove these kernels equal to its operator.
"""

from joins.kernels.windows.advance import BEFORE_ALL, BEHIND_ALL, Advance
from joins.kernels.windows.firing import (
    DELETE,
    INSERT,
    UPDATE_AFTER,
    UPDATE_BEFORE,
    Fired,
    fire,
    reads,
)
from joins.kernels.windows.partials import Partials, partials
from joins.kernels.windows.projection import Projected, project
from joins.kernels.windows.spec import WindowSpec, window_inputs
from joins.kernels.windows.state import LATE, compact, partial_schema, state_schema

__all__ = [
    "BEFORE_ALL",
    "BEHIND_ALL",
    "DELETE",
    "INSERT",
    "LATE",
    "UPDATE_AFTER",
    "UPDATE_BEFORE",
    "Advance",
    "Fired",
    "Partials",
    "Projected",
    "WindowSpec",
    "compact",
    "fire",
    "partial_schema",
    "partials",
    "project",
    "reads",
    "state_schema",
    "window_inputs",
]
