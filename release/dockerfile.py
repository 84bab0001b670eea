"""Run the steps of the Dockerfile in folders and virtual environments, where no container engine is at hand.

    python release/dockerfile.py FOLDER      leaves the final environment in FOLDER/final

Each stage gets a folder as its root; COPY copies only what .dockerignore lets through; `pip` is that of a fresh
virtual environment of this Python. Steps that need root (apt-get, useradd) are left out and named.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SYSTEM = ("apt-get", "useradd")


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile with their arguments, lines joined."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def allowed() -> set[str]:
    """What .dockerignore lets into the build: it ignores everything but the names after `!`."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    if lines[0] != "*":
        sys.exit(".dockerignore must begin with *: what is built must not depend on stray files")
    return {line[1:] for line in lines if line.startswith("!")}


class Stage:
    """A stage of the build: a folder as its file system, a virtual environment as its Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place = folder
        subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)

    def path(self, name: str) -> Path:
        """A path of the container on this machine."""
        return self.folder / name.lstrip("/") if name.startswith("/") else self.place / name

    def copy(self, source: Path, target: Path) -> None:
        """COPY of one file, or of the content of a folder."""
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.so")
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)
        else:
            target.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)

    def run(self, script: str) -> None:
        """RUN, with the environment's programs first on the path."""
        steps = [step.strip() for step in script.split("&&")]
        kept = [step for step in steps if not step.startswith(SYSTEM) and "/var/lib/apt" not in step]
        for step in steps:
            if step not in kept:
                print(f"left out: {step}")
        if not kept:
            return
        moved = re.sub(
            r"(?<![\w.])/(wheels|source|data)\b", lambda m: str(self.folder / m[1]), " && ".join(kept)
        )
        path = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        subprocess.run(["sh", "-euc", moved], cwd=self.place, env={**os.environ, "PATH": path}, check=True)


def build(folder: Path) -> tuple[list[str], Path]:
    """Run all stages; returns the command of the image (its ENTRYPOINT on this machine) and its working folder."""
    stages: dict[str, Stage] = {}
    stage, entry = None, []
    for name, rest in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        if name == "FROM":
            label = rest.rpartition(" AS ")[2] if " AS " in rest else "final"
            stage = stages[label] = Stage(folder / label)
            continue
        if stage is None:
            sys.exit("the Dockerfile must begin with FROM")
        if name == "WORKDIR":
            stage.place = stage.path(rest)
            stage.place.mkdir(parents=True, exist_ok=True)
        elif name == "COPY":
            options, *names = shlex.split(rest) if rest.startswith("--from=") else ["", *shlex.split(rest)]
            *sources, target = names
            for source in sources:
                if options:
                    stage.copy(stages[options.removeprefix("--from=")].path(source), stage.path(target))
                elif source not in allowed():
                    sys.exit(f"COPY {source}: .dockerignore keeps it out")
                else:
                    stage.copy(ROOT / source, stage.path(target))
        elif name == "RUN":
            stage.run(rest)
        elif name == "ENTRYPOINT":
            program, *arguments = [part.strip('" ') for part in rest.strip("[]").split(",")]
            entry = [str(stage.folder / "venv" / "bin" / program), *arguments]
    if stage is None or not entry:
        sys.exit("the Dockerfile has no ENTRYPOINT")
    return entry, stage.place


def main() -> None:
    """Build, then ask the command for its version and its help."""
    entry, place = build(Path(sys.argv[1]).resolve())
    for argument in ("--version", "--help"):
        done = subprocess.run([*entry, argument], cwd=place, text=True, stdout=subprocess.PIPE, check=True)
        print(done.stdout.splitlines()[0])


if __name__ == "__main__":
    main()
