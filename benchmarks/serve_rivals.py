"""What `benchmarks/serve.py` compares with: services around River and Vowpal Wabbit, and empty ones.

python benchmarks/serve_rivals.py river|vw|starlette|empty PORT
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any


def river_app() -> Any:
    """River in FastAPI: the handlers are `async def`, so nothing is handed to a thread; nothing is durable."""
    from fastapi import Body, FastAPI
    from river import compose, linear_model, preprocessing

    model = (
        compose.Select("user", "city", "device") | preprocessing.OneHotEncoder()
    ) + (
        compose.Discard("user", "city", "device", "label") | preprocessing.StandardScaler()
    ) | linear_model.LogisticRegression()  # fmt: skip
    app = FastAPI()

    def answer(record: dict[str, Any]) -> dict[str, Any]:
        chance = model.predict_proba_one(record).get(True, 0.5)
        return {"prediction": int(chance >= 0.5), "probabilities": {"0": 1.0 - chance, "1": chance}}

    def taught(record: dict[str, Any]) -> dict[str, Any]:
        label = record.pop("label")
        made = answer(record)
        model.learn_one(record, bool(label))
        return made

    @app.post("/predict")
    async def predict(record: dict[str, Any] = Body()) -> dict[str, Any]:  # noqa: B008 - FastAPI's way
        return answer(record)

    @app.post("/learn")
    async def learn(record: dict[str, Any] = Body()) -> dict[str, Any]:  # noqa: B008
        return taught(record)

    @app.post("/predict_many")
    async def predict_many(records: list[dict[str, Any]] = Body()) -> list[dict[str, Any]]:  # noqa: B008
        return [answer(record) for record in records]

    @app.post("/learn_many")
    async def learn_many(records: list[dict[str, Any]] = Body()) -> list[dict[str, Any]]:  # noqa: B008
        return [taught(record) for record in records]

    return app


def vw_app() -> Any:
    """Vowpal Wabbit in Starlette: VW text in, so nothing has to be translated; nothing is durable."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route
    from vowpalwabbit import Workspace

    model = Workspace("--loss_function logistic --link logistic --quiet -b 18")

    async def predict(request: Any) -> Any:
        lines = (await request.body()).decode().splitlines()
        return JSONResponse([model.predict(line) for line in lines])

    async def learn(request: Any) -> Any:
        answers = []
        for line in (await request.body()).decode().splitlines():
            example = model.example(line)
            answers.append(model.predict(example))
            model.learn(example)
            model.finish_example(example)
        return JSONResponse(answers)

    paths = {"/predict": predict, "/learn": learn, "/predict_many": predict, "/learn_many": learn}
    return Starlette(routes=[Route(path, handler, methods=["POST"]) for path, handler in paths.items()])


def starlette_app() -> Any:
    """An empty handler of Starlette."""
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Route

    async def empty(request: Any) -> Any:
        await request.body()
        return JSONResponse({"prediction": 0.0})

    return Starlette(routes=[Route("/predict", empty, methods=["POST"])])


def run_empty(port: int) -> None:
    """An empty handler of our own HTTP server."""
    import uvloop

    from sketchnewton.serve.errors import ApiError
    from sketchnewton.serve.http import Connections, Limits
    from sketchnewton.serve.messages import Request, Response

    class Empty:
        def admit(self, request: Request) -> None:
            pass

        def handle(self, request: Request) -> Response:
            return Response(b'{"prediction": 0.0}')

        def finished(self, request: Request, response: Response) -> None:
            pass

        def broken(self, error: Exception) -> ApiError:
            return ApiError(500, "internal", "")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Connections(Empty(), Limits(), loop), "127.0.0.1", port)
        await server.serve_forever()

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    asyncio.run(main())


def main() -> None:
    name, port = sys.argv[1], int(sys.argv[2])
    if name == "empty":
        run_empty(port)
        return
    import uvicorn

    app = {"river": river_app, "vw": vw_app, "starlette": starlette_app}[name]()
    uvicorn.run(
        app, host="127.0.0.1", port=port, log_level="error", access_log=False, loop="uvloop", http="httptools"
    )


if __name__ == "__main__":
    main()
