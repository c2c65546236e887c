"""Print the modules that one batch of the stream passes, and how many functions of each it enters.

A `sitecustomize` in the job's processes notes the functions: in the runner those of the stream's
thread, in Spark's Python workers those of the main thread, once a signal says that they are warm.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
WARM_S, TRACED_S, PATIENCE_S = 15, 10, 300
HOOK = """
import os, signal, sys, threading
root, seen, known = os.environ["TRACED_ROOT"], os.environ["TRACED_SEEN"], set()

def note(frame, event, arg):
    code = frame.f_code
    file = code.co_filename
    if event == "call" and code not in known and file.startswith(root) and "/.venv/" not in file:
        known.add(code)
        if os.path.exists(seen):
            line = f"{os.path.relpath(code.co_filename, root)} {code.co_name}\\n"
            with open(seen, "a") as file:
                file.write(line)
        else:
            known.discard(code)

def of_thread(frame, event, arg):
    sys.setprofile(note if threading.current_thread().name.startswith("probe") else None)

if "service.jobs.runner" in sys.orig_argv:
    threading.setprofile(of_thread)
elif "joins.worker.daemon" in sys.orig_argv:
    signal.signal(signal.SIGUSR1, lambda *_: sys.setprofile(note))
"""


def workers(root: str) -> list[int]:
    """Processes of Spark's Python workers that are traced."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            is_worker = b"--prepared" in (entry / "cmdline").read_bytes()
            if is_worker and f"TRACED_SEEN={root}".encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError):
            continue
    return found


def main() -> None:
    """Print the modules and, behind each, how many functions of it were entered."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "sitecustomize.py").write_text(HOOK)
        seen = directory / "seen"
        traced = {"PYTHONPATH": name, "TRACED_ROOT": f"{ROOT}/", "TRACED_SEEN": str(seen)}
        sluice = [sys.executable, "-m", "service.cli"]
        said = directory / "up"
        command = [*sluice, "up", "--port=0", f"--data-dir={directory / 'data'}"]
        with said.open("w") as file:
            up = subprocess.Popen(command, stdout=file, cwd=ROOT, env={**os.environ, **traced})
        try:
            while "first.sql" not in said.read_text():
                if up.poll() is not None:
                    raise SystemExit("sluice up ended")
                time.sleep(0.5)
            server = next(word for word in said.read_text().split() if word.startswith("http://"))
            script = (directory / "data/first.sql").read_text()
            script = script.replace("'connector' = 'print'", "'connector' = 'delta', 'path' = 'o'")
            (directory / "traced.sql").write_text(script)
            submit = ["submit", str(directory / "traced.sql"), f"--server={server}", "--wait=join"]
            subprocess.run(
                [*sluice, *submit, f"--timeout={PATIENCE_S}"], cwd=ROOT, check=True, stdout=2
            )
            time.sleep(WARM_S)
            for pid in workers(str(seen)):
                os.kill(pid, signal.SIGUSR1)
            seen.touch()
            time.sleep(TRACED_S)
            lines = sorted({line for line in seen.read_text().split("\n") if line})
        finally:
            up.terminate()
            up.wait()
    modules: dict[str, int] = {}
    for line in lines:
        module = line.split()[0].removesuffix(".py").replace("/", ".")
        modules[module] = modules.get(module, 0) + 1
    for module, functions in modules.items():
        sys.stdout.write(f"{module:50} {functions}\n")
    sys.stdout.write(f"{len(modules)} modules, {len(lines)} functions\n")


if __name__ == "__main__":
    main()
