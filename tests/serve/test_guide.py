"""What docs/serving.md shows works as it is written."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httptools", reason="needs the extra serve")
from sketchnewton.cli.options.command_line import parser_of
from tests.serve.running import serving

GUIDE = (Path(__file__).parents[2] / "docs" / "serving.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)


def test_programs_run_one_after_another(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    programs = blocks("python")
    assert len(programs) >= 4
    with serving(tmp_path / "state", "--classes", "no,yes", "--loss", "logistic") as server:
        for program in programs:
            exec(program.replace("127.0.0.1:8080", f"127.0.0.1:{server.port}"), names)
        assert names["client"].model()["version"] == 4
        names["client"].close()
    assert "404 unknown_id" in capsys.readouterr().out


def test_requests_with_curl(tmp_path: Path) -> None:
    requests = re.findall(r"localhost:8080(\S+) -H 'Content-Type: (\S+)' -d '(.*)'", GUIDE)
    assert len(requests) == 2
    (shown,) = blocks("json")
    with serving(tmp_path / "state", "--classes", "no,yes", "--loss", "logistic") as server:
        client = server.client()
        answers = [client.ask("POST", path, body.encode(), kind) for path, kind, body in requests]
    assert [answer.status for answer in answers] == [200, 200]
    assert answers[0].json.keys() == json.loads(shown).keys()


def test_options_exist() -> None:
    known = set(parser_of("serve").options()) | set(parser_of("top").options())
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDE))
    foreign = {"--crash", "--tag", "--volume", "--publish"}
    assert named - foreign <= known


def test_figures_of_prometheus_exist(tmp_path: Path) -> None:
    with serving(tmp_path / "state") as server:
        page = server.client().get("/metrics").data.decode()
    named = re.findall(r"`(skn_[a-z_]+)", GUIDE)
    assert len(named) == 3
    for name in named:
        assert f"\n{name} " in page


def test_the_unit_has_what_systemd_asks_for() -> None:
    (text,) = blocks("ini")
    unit = configparser.ConfigParser(strict=False, interpolation=None)  # LoadCredential comes twice
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(text.replace("\\\n", ""))
    assert unit["Service"]["ExecStart"].split()[1] == "serve"
    assert unit["Install"]["WantedBy"] == "multi-user.target"
