"""CSV as it is found: semicolons, tabs, quoted line ends, no header."""

from __future__ import annotations

from pathlib import Path

import pytest

from sketchnewton.cli.main import main
from sketchnewton.streams import Columns, open_stream
from sketchnewton.streams.opening import format_of_content
from tests.streams.format_support import drain, hashed

ROWS = [["label", "price", "city, state"], ["1", "2.5", 'two\nlines; "a", b'], ["-1", "", "Rome\tx"]]
EXPECTED = [
    hashed('city, state=two\nlines; "a", b', values={"price": 2.5}),
    hashed("price=", "city, state=Rome\tx"),
]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|", "~"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("batch_bytes", [1, 40, 1 << 20])
def test_delimiters(delimiter: str, end: str, batch_bytes: int, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_bytes("".join(delimiter.join(map(quoted, row)) + end for row in ROWS).encode())
    found = delimiter in ",;\t"
    how = {} if found else {"delimiter": delimiter}
    rows, error = drain(path, batch_bytes=batch_bytes, **how)
    assert error == ""
    assert [row[4] for row in rows] == EXPECTED
    assert [row[0] for row in rows] == ["1.0", "-1.0"]


def test_quotes_do_not_separate(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('label;"a,b,c,d"\n1;2,x\n')
    rows, error = drain(path)
    assert (rows[0][4], error) == (hashed("a,b,c,d=2,x"), "")


def test_decimal_commas(tmp_path: Path) -> None:
    """Files with semicolons have them for a reason."""
    path = tmp_path / "rows.csv"
    path.write_text("label;price;size;code\n1;2,5;3;1,2,3\n-1,5;NA;4;x\n0;-,25e1;5;y\n")
    rows, error = drain(path)
    assert error == ""
    assert [row[0] for row in rows] == ["1.0", "-1.5", "0.0"]
    assert rows[0][4] == hashed("code=1,2,3", values={"price": 2.5, "size": 3.0})
    assert rows[1][4] == hashed("price=", "code=x", values={"size": 4.0})
    assert rows[2][4] == hashed("code=y", values={"price": -2.5, "size": 5.0})
    assert drain(path, batch_bytes=1) == (rows, "")
    with open(path, "a") as file:
        file.write("1;2.5;3;z\n1;oops;3;z\n")  # a point is understood, too
    kinds = Columns().with_kinds({"price": "number", "size": "number", "code": "category"})
    more, error = drain(path, columns=kinds)
    assert more[3][4] == hashed("code=z", values={"price": 2.5, "size": 3.0})
    assert error.startswith(f"{path}:6:3: expected a number in column 'price', got 'oops'")


@pytest.mark.parametrize("spelling", ["-9,99", "-9.99", "-9,990"])
@pytest.mark.parametrize("cell", ["-9,99", "-9.99", "-9,990", " -9,99 ", "-,999e1"])
def test_missing_numbers_with_decimal_commas(spelling: str, cell: str, tmp_path: Path) -> None:
    """However the number is spelled."""
    path = tmp_path / "rows.csv"
    path.write_text(f"label;price;size\n1;2,5;3\n0;{cell};4\n")
    rows, error = drain(path, columns=Columns(missing=(spelling,)))
    assert error == ""
    assert rows[1][4] == hashed("price=", values={"size": 4.0})


@pytest.mark.parametrize("cell", ["-999", "-999.0", "-999.00", "-9.99e2", " -999"])
def test_missing_numbers(cell: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(f"label,price,size\n1,2.5,3\n0,{cell},4\n1,-99,4\n")
    rows, error = drain(path, columns=Columns(missing=("-999",)))
    assert error == ""
    assert rows[1][4] == hashed("price=", values={"size": 4.0})
    assert rows[2][4] == hashed(values={"price": -99.0, "size": 4.0})


def test_labels_with_decimal_commas_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, model = tmp_path / "rows.csv", str(tmp_path / "m.skn")
    path.write_text("label;x\n" + "".join(f"{k % 7},5;{k % 7}\n" for k in range(100)))
    assert main(["train", str(path), "--model", model]) == 0
    assert main(["predict", model, str(path)]) == 0
    assert abs(float(capsys.readouterr().out.split()[3]) - 3.5) < 1.0


def test_a_file_without_a_name_has_semicolons() -> None:
    assert format_of_content(b"label;price;city\n1;2;x\n") == "csv"


@pytest.mark.parametrize("ending", ["csv", "tsv"])
def test_no_header(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"rows.{ending}"
    lines = ["1,2.5,Rome", "-1,NA,Oslo"]
    path.write_text("".join(line.replace(",", "\t" if ending == "tsv" else ",") + "\n" for line in lines))
    rows, error = drain(path, header=False, columns=Columns(label="1"))
    assert error == ""
    assert rows[0][4] == hashed("3=Rome", values={"2": 2.5})
    assert rows[1][4] == hashed("2=", "3=Oslo")
    with pytest.raises(ValueError, match="no column is named '4'; there are 1, 2, 3"):
        list(open_stream(path, header=False, columns=Columns(label="4")))


def test_numbers_instead_of_names_point_to_the_option(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("1,2\n3,4\n")
    assert drain(path)[1].endswith("got '1,2' (--no-header if there are none)")


def test_columns_that_pandas_has_numbered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`DataFrame(X).to_csv` writes 0, 1, 2, … as the names of columns."""
    path = tmp_path / "rows.csv"
    path.write_text("0,1,2\n1,2.5,3\n")
    rows, error = drain(path, columns=Columns(label="0"))
    assert error == ""
    assert rows[0][4] == hashed(values={"1": 2.5, "2": 3.0})
    path.write_text("y,0,1\n1,2,3\n-1,3,2\n1,2,5\n")
    model = str(tmp_path / "m.skn")
    assert main(["train", str(path), "--model", model, "--quiet"]) == 0
    answers = set()
    for text in ("0,1\n2,3\n", "1,0\n3,2\n", "1,y,0\n3,1,2\n"):
        path.write_text(text)
        assert main(["predict", model, str(path)]) == 0
        answers.add(capsys.readouterr().out)
    assert len(answers) == 1
    path.write_text("0,7\n2,3\n")  # not the model's names
    assert main(["predict", model, str(path)]) == 1
    assert "got '0,7' (--no-header if there are none)" in capsys.readouterr().err


def test_numbers_of_a_table_without_a_header_are_no_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, model = tmp_path / "rows.csv", str(tmp_path / "m.skn")
    path.write_text("1,2\n2,1\n1,1\n")
    assert main(["train", str(path), "--no-header", "--label", "1", "--model", model, "--quiet"]) == 0
    assert main(["predict", model, str(path)]) == 1
    assert "(--no-header if there are none)" in capsys.readouterr().err


def test_a_row_that_counts_from_zero_is_no_header_of_columns_learned_without_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """0,1,2 was taken for names, of which the model knows 2: another column, and a row was lost."""
    path, model = tmp_path / "rows.csv", str(tmp_path / "m.skn")
    path.write_text("1,2,9\n2,1,7\n1,1,8\n")
    assert main(["train", str(path), "--no-header", "--label", "1", "--model", model, "--quiet"]) == 0
    path.write_text("0,1,2\n1,2,9\n")
    assert main(["predict", model, str(path)]) == 1
    assert "got '0,1,2' (--no-header if there are none)" in capsys.readouterr().err
    assert main(["predict", model, str(path), "--no-header"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "label", "warned"),
    [
        ("0,1,2\n1,2,9\n2,1,7\n", "2", True),
        ("0,1,2\n1,2,9\n2,1,7\n", "0", False),  # only a header has a column 0
        ("0,1,y\n1,2,9\n2,1,7\n", "y", False),
    ],
)
def test_a_first_line_that_may_be_a_row_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, label: str, warned: bool
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(text)
    assert main(["train", str(path), "--label", label]) == 0
    told = "the first line, 0,1,2, was taken for the names of the columns (--no-header if it is a row)"
    assert (told in capsys.readouterr().err) == warned


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, model = tmp_path / "rows.csv", str(tmp_path / "m.skn")
    data.write_text("spam~1.5\nham~-1\nspam~2\nham~-0.5\n")
    options = ["--no-header", "--delimiter", "~"]
    assert main(["train", str(data), "--label", "1", *options, "--model", model, "--passes", "3"]) == 0
    assert "label 'spam' as +1, 'ham' as -1" in capsys.readouterr().err
    assert main(["predict", model, str(data), *options]) == 0
    assert capsys.readouterr().out.split() == ["spam", "ham", "spam", "ham"]
    data.write_text("1;2;amount\nspam;1.5;7\n")  # with a header, and another delimiter
    assert main(["predict", model, str(data)]) == 0
    assert main(["train", str(data), "--delimiter", "ab"]) == 2
    assert "must be one ASCII character, or tab" in capsys.readouterr().err
    lines = tmp_path / "rows.jsonl"
    lines.write_text('{"label": 1, "a": 2}\n')
    assert main(["train", str(lines), "--no-header"]) == 2
    assert "--no-header does not apply to" in capsys.readouterr().err
    rows = tmp_path / "rows.vw"
    rows.write_text("1 | a\n")
    assert main(["train", str(rows), "--delimiter", ";"]) == 2
    assert "--delimiter does not apply to" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_named(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("label,city\n1,Zürich\n".encode(encoding))
    assert drain(tmp_path / "t.csv")[1].startswith(f"{tmp_path}/t.csv:1:1: expected UTF-8, got UTF-16: iconv")
