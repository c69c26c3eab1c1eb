"""Run the README's commands as a newcomer would, and write what they print: docs/first_report.md.

    python docs/make_transcript.py

Only the installation is left out. ``tests/test_docs.py`` runs the same commands.
"""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ncbayes as ncb

ROOT = Path(__file__).parents[1]
OUT = ROOT / "docs" / "first_report.md"
BLOCK = re.compile(r"^```sh\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
INSTALL = re.compile(r"^python3 -m venv .* && (?=ncbayes )")
HEAD = """# From nothing to a report: a recorded session

What a newcomer sees who types the commands of the README, once it is installed. Recorded by
`python docs/make_transcript.py`, {date}, ncbayes {version}, Python {python}, {cores} cores:
**{seconds:.0f} s in all**{busy}. The tests run the same commands.
On a terminal each fit has a bar for each chain; in a log, as here, a line every ten seconds.

"""
TAIL = """
`my-run/report.html` then looks like [this](report.md), and `ncbayes-demo/report.html` is such a
page with two fits. Every command and option:
[The command line](command_line.md).
"""


def commands(text: str) -> list[str]:
    """The lines of the shell blocks that the tests run too."""
    lines = [line for block in BLOCK.finditer(text) for line in block["body"].splitlines()]
    return [INSTALL.sub("", line) for line in lines if line]


def recorded(command: str, folder: str) -> tuple[str, float]:
    """What a command prints, and its seconds; an error if it fails."""
    words = [sys.executable, "-m", *command.split()]
    began = time.perf_counter()
    done = subprocess.run(
        words,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
        env={**os.environ, "COLUMNS": "80"},
    )
    return done.stdout.rstrip(), time.perf_counter() - began


def main() -> None:
    """Write the page."""
    parts, total = [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        for command in commands((ROOT / "README.md").read_text(encoding="utf-8")):
            printed, seconds = recorded(command, folder)
            total += seconds
            parts.append(f"```\n$ {command}\n{printed}\n```\n\n({seconds:.0f} s)\n")
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    busy = f", while the machine had other work to do (load {load:.0f})" if load > 2 * cores else ""
    head = HEAD.format(
        busy=busy,
        date=datetime.date.today(),
        version=ncb.__version__,
        python=platform.python_version(),
        cores=cores,
        seconds=total,
    )
    OUT.write_text(head + "\n".join(parts) + TAIL, encoding="utf-8")


if __name__ == "__main__":
    main()
