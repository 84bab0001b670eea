"""An installed package works: the command line, learners, files, estimators. Needs nothing but the package.

`make test-wheel` copies this file away from the sources and runs it with a wheel in a fresh environment; run as a
script it prints versions and a digest of predictions, which must be the same everywhere.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import scipy
import sklearn
from scipy.sparse import csr_array

import sketchnewton
from sketchnewton import Model, NewtonBank, SketchedNewton, load
from sketchnewton.core.names import LEARNERS

SKN = shutil.which("skn", path=sysconfig.get_path("scripts"))
ZSTD = "backports.zstd" if sys.version_info < (3, 14) else "compression.zstd"
CLASSES = {"AdaGradMulticlass", "ClassBank", "OneVsAll"}


def rows(count: int = 400, features: int = 12) -> tuple[csr_array, np.ndarray]:
    rng = np.random.default_rng(0)
    dense = rng.integers(-3, 4, (count, features)) * (rng.random((count, features)) < 0.5)
    labels = np.where(dense @ rng.integers(-2, 3, features) + 0.5 > 0, 1.0, -1.0)
    return csr_array(dense.astype(float)), labels


def skn(*arguments: object) -> str:
    assert SKN is not None
    done = subprocess.run([SKN, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def two_class_learners() -> list[str]:
    return [entry.name for entry in LEARNERS if entry.top_level and entry.name not in CLASSES]


@pytest.mark.parametrize("name", two_class_learners())
def test_learners_learn_and_their_files_continue(name: str, tmp_path: Path) -> None:
    X, y = rows()
    make = getattr(sketchnewton, name)
    learner, parted = make(), make()
    predictions = learner.learn(X, y)
    parted.learn(X[:200], y[:200])
    parted.save(tmp_path / "model.skn")
    again = load(tmp_path / "model.skn")
    assert np.array_equal(again.learn(X[200:], y[200:]), predictions[200:])
    assert np.isfinite(learner.predict(X)).all()
    if name == "NewtonBank":  # which alone promises something without a parameter
        assert np.mean(np.sign(learner.predict(X)) != y) < 0.1


def test_command_line(tmp_path: Path) -> None:
    text = "".join(f"{i % 2} |f a:{i % 7} b{i % 3} ü\n" for i in range(300))
    (tmp_path / "all.vw").write_text(text, encoding="utf-8")
    with gzip.open(tmp_path / "head.vw.gz", "wt", encoding="utf-8") as file:
        file.writelines(text.splitlines(keepends=True)[:100])
    (tmp_path / "tail.vw").write_text("".join(text.splitlines(keepends=True)[100:]), encoding="utf-8")
    skn("train", tmp_path / "all.vw", "--model", tmp_path / "all.skn", "--quiet")
    skn("train", tmp_path / "head.vw.gz", "--model", tmp_path / "m.skn", "--quiet")
    skn(
        "train",
        tmp_path / "tail.vw",
        "--resume",
        tmp_path / "m.skn",
        "--model",
        tmp_path / "m.skn",
        "--quiet",
    )
    assert (tmp_path / "m.skn").read_bytes() == (tmp_path / "all.skn").read_bytes()
    assert len(skn("predict", tmp_path / "m.skn", tmp_path / "tail.vw").splitlines()) == 200
    assert "NewtonBank" in skn("inspect", tmp_path / "m.skn")
    assert sketchnewton.__version__ in skn("--version")


@pytest.mark.parametrize("ending", ["vw", "svm", "jsonl", "csv", "vw.gz", "vw.zst"])
def test_formats_of_the_base_package(ending: str, tmp_path: Path) -> None:
    other = tmp_path / f"other.{ending}"
    lines = {
        "vw": "".join(f"{i % 2} |f a:{i % 5} Rome\n" for i in range(60)),
        "svm": "".join(f"{i % 2} 1:{i % 5} 7:1\n" for i in range(60)),
        "jsonl": "".join(f'{{"label": {i % 2}, "a": {i % 5}, "city": "Rome"}}\n' for i in range(60)),
        "csv": "label,a,city\n" + "".join(f"{i % 2},{i % 5},Rome\n" for i in range(60)),
    }
    name, _, compression = ending.partition(".")
    data = lines[name].encode()
    if compression == "gz":
        data = gzip.compress(data)
    elif compression == "zst":
        data = importlib.import_module(ZSTD).compress(data)
    other.write_bytes(data)
    skn("train", other, "--model", tmp_path / "m.skn", "--quiet")
    assert len(skn("predict", tmp_path / "m.skn", other).splitlines()) == 60


def test_a_missing_extra_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "rows.parquet").write_bytes(b"PAR1" + bytes(60) + b"PAR1")
    script = (
        "import sys; sys.modules['pyarrow'] = None\n"
        f"from sketchnewton.cli.main import main; sys.exit(main(['train', {str(tmp_path / 'rows.parquet')!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "pip install 'sketchnewton[arrow]'" in done.stderr


def test_names_of_any_alphabet() -> None:
    model = Model(learner=NewtonBank())
    records = [{"größe": i % 4, "a_name_of_more_than_fifteen_letters": 1.0, "x": i % 3} for i in range(50)]
    model.learn(records, [float(i % 2) for i in range(50)])
    assert np.isfinite(model.predict(records)).all()


def test_estimators() -> None:
    from sketchnewton import SketchedNewtonClassifier, SketchedNewtonRegressor

    X, y = rows()
    assert SketchedNewtonClassifier().fit(X, y).score(X, y) > 0.8
    assert np.isfinite(SketchedNewtonRegressor().fit(X, y).predict(X)).all()


def test_sketches() -> None:
    X, _ = rows()
    sketch = sketchnewton.FrequentDirections(5).update(X)
    assert sketch.matrix.shape[1] == 12


def digest() -> str:
    X, y = rows()
    learned = [NewtonBank(), *(SketchedNewton(kind) for kind in ("oja", "fd", "rfd", "none"))]
    return hashlib.sha256(b"".join(learner.learn(X, y).tobytes() for learner in learned)).hexdigest()


if __name__ == "__main__":
    print(
        f"Python {sys.version.split()[0]}, NumPy {np.__version__}, SciPy {scipy.__version__},"
        f" scikit-learn {sklearn.__version__} {digest()}"
    )
