"""A terminal without a window: what a program shows on it, and a picture of that."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

_PROMPT = "$ "
# Rich's own frame asks for a font from elsewhere; this one takes what the machine has.
_PICTURE = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def shown(
    command: Sequence[str], *, width: int, at: Path, variables: Mapping[str, str], height: int = 40
) -> str:
    """What `command`, run in `at`, writes to a terminal of this size, with its escape sequences."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
    own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", **variables}
    environment = {name: value for name, value in os.environ.items() if name != "NO_COLOR"} | own
    with subprocess.Popen(
        command,
        cwd=at,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=its,
        stderr=subprocess.DEVNULL,
    ) as program:
        os.close(its)
        read = bytearray()
        while block := _block(ours):
            read += block
    os.close(ours)
    assert program.returncode == 0, read.decode(errors="replace")
    return read.decode().replace("\r\n", "\n")


def _block(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how Linux says that nobody has the other side any more
        return b""


def picture(scenes: Sequence[tuple[str, str]], *, width: int) -> str:
    """SVG of a terminal in which commands were typed one after the other; (command, shown)."""
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        screen = Console(
            record=True, width=width, file=nowhere, force_terminal=True, color_system="truecolor"
        )
        for command, text in scenes:
            screen.print(Text.assemble((_PROMPT, "bold green"), (command, "bold")))
            screen.print(Text.from_ansi(text.rstrip("\n")), soft_wrap=True)
        return screen.export_svg(title="sluice", theme=MONOKAI, code_format=_PICTURE)
