"""The diffs of CONTRIBUTING.md apply to this product, touch few files, and do what they say."""

import re
import shutil
import subprocess
import sys
import typing

import pytest

from joins.plan.plan import DimensionSource, Sink
from service.connectors.registry import SINKS, SOURCES
from tests.support.hints import PACKAGES, ROOT

MOST_FILES = 4
SCRIPT = """
from service.sql.planner.planner import plan_script
from service.sql.answers.explain import explain
plan = plan_script('''
CREATE TABLE d (k BIGINT, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH (%s);
CREATE TABLE s (k BIGINT, p AS PROCTIME())
    WITH ('connector'='kafka', 'topic'='t', 'properties.bootstrap.servers'='h:1', 'format'='json');
CREATE TABLE o (k BIGINT, v STRING) WITH (%s);
INSERT INTO o SELECT s.k, %s FROM s JOIN d FOR SYSTEM_TIME AS OF s.p ON s.k = d.k;
''', name="any").plan
text = chr(10).join(explain(plan))
"""
MYSQL = """'connector'='mysql-cdc', 'hostname'='h', 'username'='u', 'password'='${secret:p}',
    'database-name'='s', 'table-name'='d'"""
BLACKHOLE = "'connector'='blackhole'"
INLINE = """'connector'='inline', 'rows'='{"k": 1, "v": "one"}'"""
USES = {
    "A SQL function": SCRIPT % (MYSQL, BLACKHOLE, "SWAPCASE(d.v)")
    + "from joins.kernels.strings.texts import TEXT; assert 'SWAPCASE' in {*TEXT} and text",
    "A connector": SCRIPT % (INLINE, BLACKHOLE, "d.v")
    + """
from service.config import Settings
from service.connectors.plans import check_allowed
from service.connectors.registry import source_connector
from service.jobs.store import plan_codec
assert 'inline(1 rows)' in text and plan_codec.load(plan_codec.dump(plan)) == plan
check_allowed(plan, Settings())
(dimension,) = plan.dimensions
source_connector(dimension.source).check(dimension, dimension.source, Settings())
""",
    "A sink": SCRIPT % (MYSQL, "'connector'='lines', 'path'='rows.txt'", "d.v")
    + """
from service.config import Settings
from service.connectors.plans import check_allowed
from service.connectors.registry import sink_connector
from service.jobs.store import plan_codec
assert 'lines(rows.txt)' in text and plan_codec.load(plan_codec.dump(plan)) == plan
check_allowed(plan, Settings())
assert plan.sink.dataset.name == 'rows.txt' and sink_connector(plan.sink)
""",
    "A field of a job's status": """
from service.schemas.jobs import DimensionView
import service.jobs.status
assert 'changelog_topic' in DimensionView.model_fields
""",
    "An option of a source": SCRIPT % (MYSQL + ", 'freshness.interval'='2 s'", BLACKHOLE, "d.v")
    + """
from joins.plan.plan import MysqlCdcSource
from service.jobs.update.fields import rules_of
assert plan.dimensions[0].source.freshness_ms == 2000 and 'freshness_ms' in rules_of(MysqlCdcSource)
""",
}
CHANGES = dict(
    re.findall(
        r"^\*\*(.+?)[.,]?\*\*.*?^```diff\n(.*?)^```",
        (ROOT / "CONTRIBUTING.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)


def test_every_kind_of_source_and_sink_is_registered():
    assert set(SOURCES) == set(typing.get_args(DimensionSource))
    assert set(SINKS) == set(typing.get_args(Sink))


def test_each_usual_change_is_shown():
    assert set(CHANGES) == set(USES)


@pytest.fixture(scope="module")
def product(tmp_path_factory):
    copied = tmp_path_factory.mktemp("product")
    without = shutil.ignore_patterns("__pycache__", "page")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, copied / package, ignore=without)
    shutil.copy(ROOT / "pyproject.toml", copied)
    return copied


@pytest.mark.parametrize("change", USES)
def test_a_usual_change_is_a_diff_of_few_files(processes, product, change):
    def applied(*options):
        subprocess.run(["git", "apply", *options], cwd=product, input=diff, check=True, text=True)

    diff = CHANGES[change]
    files = re.findall(r"^diff --git a/(\S+)", diff, re.MULTILINE)
    assert len(files) <= MOST_FILES
    applied()
    try:
        there = [file for file in files if (product / file).exists()]
        ruff = [sys.executable, "-m", "ruff", "check", "--no-cache", *there]
        checked = subprocess.run(ruff, cwd=product, capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout
        used = subprocess.run(
            [sys.executable, "-c", USES[change]], cwd=product, capture_output=True, text=True
        )
        assert used.returncode == 0, used.stderr[-2000:]
    finally:
        applied("--reverse")
