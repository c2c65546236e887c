"""The client in a notebook: what cells show; the notebook of the documents from top to bottom."""

import sys
from decimal import Decimal
from types import SimpleNamespace

import nbformat
import pyarrow as pa
import pytest
from nbclient import NotebookClient

from service.client import Sluice
from service.client.tables import Tabular, html_text, notebook_display
from service.errors import ConfigError
from tests.support.hints import ROOT

NOTEBOOK = ROOT / "docs/examples/notebook.ipynb"


class Some(Tabular):
    """So many rows."""

    def __init__(self, count):
        self.rows = [{"id": at, "name": None if at % 2 else "<b>&"} for at in range(count)]

    def to_arrow(self):
        return pa.Table.from_pylist(self.rows)


def test_rows_are_tables_of_pandas_in_which_null_is_null():
    frame = Some(3).to_pandas()
    assert frame["id"].tolist() == [0, 1, 2]
    assert frame["name"].isna().tolist() == [False, True, False]
    assert str(frame["id"].dtype) == "int64[pyarrow]"


def test_rows_are_tables_of_polars_where_that_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ConfigError, match="polars is not installed"):
        Some(1).to_polars()
    assert Some(1).to_arrow().num_rows == 1
    stand_in = SimpleNamespace(from_arrow=lambda table: ("frame", table.num_rows))
    monkeypatch.setitem(sys.modules, "polars", stand_in)
    assert Some(2).to_polars() == ("frame", 2)


def test_a_cell_shows_the_first_rows_and_nothing_of_them_is_markup():
    shown = Some(30)._repr_html_()
    assert shown.count("<tr>") == 21
    assert "the first 20 rows" in shown
    assert "<b>" not in shown
    assert "&lt;b&gt;&amp;" in shown
    assert "NULL" in shown
    assert "2 rows" in Some(2)._repr_html_()


TEXTS = {
    "markup": ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
    "quotes": ("\"'", "&quot;&#x27;"),
    "controls_and_marks_of_direction": ("\x1b[2J\u202e\n", "�[2J��"),
    "long": ("<" * 300, "&lt;" * 200 + "…"),
    "nothing": (None, "NULL"),
    "a_number": (Decimal("1.50"), "1.50"),
}


@pytest.mark.parametrize(("value", "shown"), TEXTS.values(), ids=TEXTS)
def test_values_are_text_only(value, shown):
    assert html_text(value) == shown


def test_outside_of_a_notebook_nothing_is_displayed(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert notebook_display() is None
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert notebook_display() is None


def test_jobs_tables_and_outputs_have_a_form_of_their_own(tables_plane):
    with Sluice(tables_plane.url) as sluice:
        job = sluice.job("enriched")
        listed = sluice._repr_html_()
        assert "enriched" in listed
        assert "<th>waiting</th><th>dead letters</th>" in listed
        shown = job._repr_html_()
        assert "Running" in shown
        assert "<th>rows out</th>" in shown
        assert '<progress value="10" max="10">' in shown
        shown = job.dimension("users")._repr_html_()
        assert "user 3" in shown
        assert "_epoch" not in shown
        output = job.output(limit=2).to_pandas()
        assert {"user_id", "name", "price"} <= set(output.columns)
        assert "rows" in job.batches()._repr_html_()


def test_the_notebook_of_the_documents_runs(tables_plane, monkeypatch):
    monkeypatch.setenv("SLUICE_SERVER", tables_plane.url)
    monkeypatch.setenv("SLUICE_JOB", "enriched")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    shown = [
        output["data"].get("text/html", "")
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if "data" in output
    ]
    assert len(shown) == 7
    assert "Running" in shown[1]
    assert "user 3" in shown[3]
