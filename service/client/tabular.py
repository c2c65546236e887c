"""Rows of answers as tables of other libraries, and as a notebook shows them."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from service.client import html
from service.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_SHOWN = 20


class Tabular(ABC):
    """Rows that are asked for when they are wanted; each conversion asks for all of them."""

    @abstractmethod
    def to_arrow(self) -> "pa.Table":
        """All of it as one Arrow table."""

    def to_pandas(self) -> "pd.DataFrame":
        """All of it as a data frame of pandas; columns keep the types of Arrow, so NULL is NULL."""
        import pandas as pd

        return self.to_arrow().to_pandas(types_mapper=pd.ArrowDtype)

    def to_polars(self) -> Any:  # noqa: ANN401 (polars is none of our packages)
        """All of it as a data frame of polars, where that is installed.

        Raises:
            ConfigError: it is not.
        """
        try:
            import polars
        except ImportError as exc:
            raise ConfigError(
                "polars is not installed",
                hint="Install it with pip install polars, or take to_arrow().",
            ) from exc
        return polars.from_arrow(self.to_arrow())

    def _repr_html_(self) -> str:
        """The first rows, for a notebook."""
        rows = self._first(_SHOWN + 1)
        return html.first_rows(
            rows.slice(0, _SHOWN).to_pylist(), rows.column_names, more=rows.num_rows > _SHOWN
        )

    def _first(self, most: int) -> "pa.Table":
        return self.to_arrow().slice(0, most)
