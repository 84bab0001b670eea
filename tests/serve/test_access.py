"""Who may ask for what; encrypted connections; what is missing is said in one line."""

from __future__ import annotations

import http.client
import json
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sketchnewton.serve.door import routes
from tests.serve.running import Server, serving

WRITE, READ = "w" * 20, "r" * 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("access")
    (folder / "write").write_text(f"{WRITE}\nanother-token-for-it\n")
    (folder / "read").write_text(READ)
    tokens = ("--token-file", str(folder / "write"), "--read-token-file", str(folder / "read"))
    with serving(folder / "state", "--host", "0.0.0.0", *tokens) as server:
        yield server


def test_tokens(server: Server) -> None:
    record = {"price": 1.0, "label": 1.0}
    for token in (None, "wrong-token-wrong-token", WRITE[:-1], WRITE + "x", ""):
        client = server.client(token)
        for path in ("/v1/predict", "/v1/learn"):
            assert client.post(path, record).code == "unauthorized"
        assert client.get("/v1/model").status == 401
        assert client.get("/healthz").status == 200
    reader = server.client(READ)
    assert reader.post("/v1/predict", record).status == 200
    assert reader.get("/v1/model").status == 200
    for path in ("/v1/learn", "/v1/feedback", "/v1/model/load", "/v1/model/save"):
        assert reader.post(path, record).code == "read_only"
    # What is remembered is written, and learned if a label is assumed: more than reading.
    for path, body in (
        ("/v1/predict?remember=true", record),
        ("/v1/predict?id=mine", record),
        ("/v1/predict", {"records": [record], "ids": ["mine"]}),
    ):
        assert reader.post(path, body).code == "read_only"
    for token in (WRITE, "another-token-for-it"):
        assert server.client(token).post("/v1/learn", record).status == 200


def test_other_addresses_need_tokens(tmp_path: Path) -> None:
    server = Server(tmp_path / "s", "--host", "0.0.0.0", expect_start=False)
    assert server.process.wait(timeout=60) == 2
    server._ended()
    assert server.lines == ["skn: --host 0.0.0.0 is open to other machines: --token-file is needed"]


@pytest.mark.slow
def test_https(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make a certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout k.pem -out c.pem"
    made = [*command.split(), "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(made, cwd=tmp_path, check=True, capture_output=True)
    options = ("--tls-cert", str(tmp_path / "c.pem"), "--tls-key", str(tmp_path / "k.pem"))
    with serving(tmp_path / "state", *options) as server:
        context = ssl.create_default_context(cafile=str(tmp_path / "c.pem"))
        connection = http.client.HTTPSConnection("localhost", server.port, timeout=30, context=context)
        connection.request(
            "POST", "/v1/learn", b'{"price": 1, "label": 1}', {"Content-Type": "application/json"}
        )
        assert json.loads(connection.getresponse().read())["version"] == 1
        connection.close()


def test_the_extra_is_named_where_it_is_missing(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['httptools'] = None; sys.argv = ['skn', 'serve']; "
        "from sketchnewton.cli.main import main; sys.exit(main())"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert found.returncode == 1
    assert found.stderr == "skn: skn serve needs the extra `serve`: pip install 'sketchnewton[serve]'\n"


def test_figures_for_others(server: Server) -> None:
    assert server.client().post("/v1/predict", {}).status == 401
    client = server.client(WRITE)
    text = client.get("/metrics").data.decode()
    assert 'skn_requests_total{route="/v1/predict",status="401"}' in text
    assert "skn_rows_learned_total" in text
    stats = client.get("/v1/stats").json
    assert {"version", "loss", "experts", "weights", "errors"} <= set(stats)
    assert not any("wrong-token" in str(error) for error in stats["errors"])


def test_the_document_says_what_there_is(server: Server) -> None:
    paths = server.client().get("/openapi.json").json["paths"]
    undocumented = {"/openapi.json", "/v2", "/v2/models/model/ready"}
    assert set(paths) == set(routes("model")) - undocumented
    client = server.client(WRITE)
    for path in set(paths) - {"/v1/events"}:
        for method, operation in paths[path].items():
            answer = client.ask(method.upper(), path)
            kinds = set(operation["responses"]["200"]["content"])
            assert answer.status in (200, 400), path
            if answer.status == 200:
                assert answer.headers["content-type"].partition(";")[0] in kinds, path


def test_records_are_not_in_the_log(server: Server) -> None:
    client = server.client(WRITE)
    client.post("/v1/learn", {"price": 1.0, "label": 1.0})
    assert client.post("/v1/learn", {"price": "secret-4711", "label": 1.0}).status == 400
    assert "secret-4711" not in str(client.get("/v1/stats").json["errors"])
    assert not any("secret-4711" in line for line in server.lines)
