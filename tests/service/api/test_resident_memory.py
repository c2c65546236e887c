"""What the control plane has in memory before the first request, and what of it is collected."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import gc, json, sys, psutil
import service.cli.main
from service.footprint import kept_for_good, leave_out
leave_out("pandas")
with kept_for_good():
    from service.api.server import ControlPlane
    from service.jobs.supervise.hooks import default_hooks
    default_hooks().warm_up()
NAMES = ("pandas", "pyspark", "numba", "deltalake", "pymysql", "kafka")
loaded = [name for name in NAMES if sys.modules.get(name)]
collected = [gc.isenabled(), gc.get_freeze_count(), len(gc.get_objects())]
print(json.dumps([loaded, psutil.Process().memory_info().rss, collected]))
"""


@pytest.mark.usefixtures("processes")
def test_the_control_plane_has_its_clients_loaded_and_nothing_large_beside_them() -> None:
    """It may have 250 MB while it works."""
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded, resident, (is_collected, kept, looked_at) = json.loads(told.stdout)
    assert loaded == ["deltalake", "pymysql", "kafka"]
    assert resident < 225e6
    assert is_collected
    assert kept > 20 * looked_at  # a full collection stops all threads while it looks
