"""Labels, weights and tags of tables with objects and lists: a member can be one, all of it cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sketchnewton.core.batch import ParseError
from sketchnewton.features.columns import Columns
from sketchnewton.streams import open_stream

pa = pytest.importorskip("pyarrow")


def write(path: Path) -> Path:
    import pyarrow.ipc
    import pyarrow.parquet

    table = pa.table(
        {
            "label": [1.0, 0.0, 1.0],
            "u": [{"y": 1.0, "t": "a"}, {"y": 0.0, "t": "b"}, None],
            "v": [["a"], [], None],
            "x": [0.5, 1.5, 2.5],
        }
    )
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path)
        return path
    with pyarrow.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
@pytest.mark.parametrize("role", ["label", "weight", "tag"])
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("u", "column 'u' is an object: name a member, such as u|y"),
        ("v", "expected numbers or texts in column 'v', got list<"),
    ],
)
def test_no_role_for_an_object_or_a_list(
    tmp_path: Path, ending: str, role: str, column: str, message: str
) -> None:
    path = write(tmp_path / f"a.{ending}")
    roles: dict[str, Any] = {role: column}
    with pytest.raises(ParseError) as error:
        list(open_stream(str(path), columns=Columns(**roles)))
    assert str(error.value).startswith(f"{path}: {message}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("ending", ["parquet", "arrow"])
def test_members_are_labels_of_classes(ending: str, tmp_path: Path) -> None:
    """Texts are looked for before anything is learned, in a pass over the labels alone."""
    import pyarrow.ipc
    import pyarrow.parquet

    from sketchnewton import load
    from sketchnewton.cli.main import main

    cells = [{"y": ("yes", "no", "maybe")[i % 3], "t": 1.0 * i} for i in range(30)]
    table = pa.table({"u": cells, "x": [0.1 * i for i in range(30)], "w": [{"a": 1.0}] * 30})
    path, model = tmp_path / f"rows.{ending}", tmp_path / "m.skn"
    if ending == "parquet":
        pyarrow.parquet.write_table(table, path)
    else:
        with pyarrow.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
    assert main(["train", str(path), "--label", "u|y", "--model", str(model), "--quiet"]) == 0
    assert load(model).classes == ["maybe", "no", "yes"]
