"""The routes: the page, its modules, and the questions that it asks. No logic of its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException

from raison import __version__
from raison.core.errors import RaisonError
from raison.models.protocol import Model
from raison.show.html.explanation import finite
from raison.web import schemas
from raison.web.catalogue import about_model, catalogue
from raison.web.exporting import exported
from raison.web.guard import CLIENT, Guard
from raison.web.handlers import Asking
from raison.web.jobs import Busy, Job, Overdue, Workers
from raison.web.runs import Shelf
from raison.web.settings import Settings

__all__ = ["application"]

TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html; charset=utf-8", ".svg": "image/svg+xml"}
SOON = 0.4  # seconds in which an answer may come in one piece, with a status of its own
BEAT = 0.25  # seconds between two looks whether the client is still there
FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"description": "What was asked for can't be had: one sentence says why."},
    401: {"description": "A token is needed."},
    408: {"description": "The request came too slowly."},
    413: {"description": "The request is too large."},
    422: {"description": "The request is not of this shape."},
    429: {"description": "Too many requests wait; Retry-After says how long."},
    500: {"description": "A mistake of raison's own."},
}


def application(models: Mapping[str, Model], settings: Settings, shelf: Shelf) -> Guard:
    """The whole server as one ASGI application."""
    asking = Asking(models, settings)
    workers = Workers(settings.workers, settings.waiting, settings.seconds)
    assets = {path.name: path.read_bytes() for path in (files("raison") / "page").iterdir() if path.is_file()}
    known = {"version": __version__, **catalogue(), "models": [about_model(each) for each in models.values()]}
    limits = {name: getattr(settings, name) for name in ("characters", "steps", "methods", "seconds")}

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()

    app = FastAPI(
        title="raison", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", responses=FAILURES,
    )  # fmt: skip
    app.state.workers = workers

    @app.exception_handler(RaisonError)
    async def refused(_: Request, error: RaisonError) -> JSONResponse:
        return failure(error)

    @app.exception_handler(Exception)
    async def mistaken(_: Request, error: Exception) -> JSONResponse:
        return failure(error)

    @app.exception_handler(RequestValidationError)
    async def misshapen(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        named = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
        told = "is not of the right shape" if len(error.errors()) > 1 else f"is refused ({first['msg']})"
        return JSONResponse({"error": f"{named[0] if named else 'The request'} {told}."[:500]}, 422)

    @app.exception_handler(HTTPException)
    async def elsewhere(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return await asset("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        ending = name[name.rfind(".") :]
        if name not in assets or ending not in TYPES:
            raise HTTPException(404, "There is no such file.")
        return Response(assets[name], media_type=TYPES[ending], headers={"cache-control": "no-cache"})

    @app.get("/api/about")
    async def about() -> dict[str, Any]:
        """Models, methods, searches, rules, runs and limits."""
        return {**known, "limits": limits, "runs": shelf.names()}

    async def asked(request: Request, work: Callable[[], Any]) -> Response:
        return await told(request, workers, work)

    @app.post("/api/predict")
    async def predict(request: Request, body: schemas.Predict) -> Any:
        """What a model says about a text, and the tokens of the text."""
        return await asked(request, asking.predict(body))

    @app.post("/api/explain")
    async def explain(request: Request, body: schemas.Explain) -> Any:
        """Scores by one method or several."""
        return await asked(request, asking.explain(body))

    @app.post("/api/rationalize")
    async def rationalize(request: Request, body: schemas.Rationalize) -> Any:
        """The smallest part of the text that is enough."""
        return await asked(request, asking.rationalize(body))

    @app.post("/api/ground")
    async def ground(request: Request, body: schemas.Ground) -> Any:
        """An answer over passages, and what it rests on."""
        return await asked(request, asking.ground(body))

    @app.post("/api/trust")
    async def trusted(request: Request, body: schemas.Trusted) -> Any:
        """How far one explanation can be trusted."""
        return await asked(request, asking.trust(body))

    @app.post("/api/remove")
    async def remove(request: Request, body: schemas.Remove) -> Any:
        """What the model says when some units are removed."""
        return await asked(request, asking.remove(body))

    @app.post("/api/heads")
    async def heads(request: Request, body: schemas.Heads) -> Any:
        """Attention heads, and the explanation with some of them switched off."""
        return await asked(request, asking.heads(body))

    @app.post("/api/export")
    async def export(request: Request, body: schemas.Export) -> Any:
        """Explanations as one HTML file, SVG or PNG."""
        return await asked(request, lambda: exported(body))

    @app.get("/api/runs/{name}")
    async def run(
        request: Request, name: str, method: str = "", sort: str = "index", down: bool = False, find: str = "",
        start: int = 0, count: int = 50,
    ) -> Any:  # fmt: skip
        """Examples of a run, sorted and filtered."""
        return await asked(request, lambda: shelf.page(name, method, sort, down, find, start, count))

    @app.get("/api/runs/{name}/{index}")
    async def example(request: Request, name: str, index: int) -> Any:
        """All explanations of one example of a run."""
        return await asked(request, lambda: shelf.example(name, index))

    return Guard(app, settings)


def failure(error: BaseException) -> JSONResponse:
    """A sentence with the status that fits."""
    if isinstance(error, Busy):
        return JSONResponse({"error": str(error)}, 429, {"retry-after": str(error.seconds)})
    if isinstance(error, RaisonError):
        return JSONResponse({"error": str(error)}, 408 if isinstance(error, Overdue) else 400)
    return JSONResponse({"error": f"raison made a mistake of its own ({type(error).__name__}): report it."}, 500)


async def told(request: Request, workers: Workers, work: Callable[[], Any]) -> Response:
    """The result of some work: in one piece if it comes soon, else lines of progress with the result at the end."""
    job = workers.submit(work, request.scope[CLIENT])
    begun = False
    try:
        deadline = asyncio.get_running_loop().time() + SOON
        while (left := deadline - asyncio.get_running_loop().time()) > 0:
            event = await soon(job, min(left, BEAT))
            if event is None and await request.is_disconnected():
                return Response(status_code=499)
            if event is not None and event[0] == "result":
                done = event[1]
                return done if isinstance(done, Response) else Response(written(done), media_type="application/json")
            if event is not None and event[0] == "error":
                return failure(event[1])
        begun = True
        return StreamingResponse(lines(request, workers, job), media_type="application/x-ndjson")
    finally:
        if not begun:
            workers.leave(job)


async def lines(request: Request, workers: Workers, job: Job) -> AsyncIterator[bytes]:
    """Progress and the result, a JSON object in each line; the work ends when the client leaves."""
    try:
        yield line({"progress": {"done": 0, "total": 0, "what": "waiting"}})
        while True:
            event = await soon(job, BEAT)
            if event is None:
                if await request.is_disconnected():
                    return
                continue
            kind, what = event
            if kind == "progress":
                yield line({"progress": what})
            elif kind == "result":
                yield line({"result": what}) if not isinstance(what, Response) else line({"file": as_file(what)})
                return
            else:
                answer = failure(what)
                yield line({**json.loads(bytes(answer.body)), "status": answer.status_code})
                return
    finally:
        workers.leave(job)


def as_file(response: Response) -> dict[str, str]:
    import base64

    return {"type": response.media_type or "", "data": base64.b64encode(bytes(response.body)).decode()}


def line(what: Any) -> bytes:
    return written(what) + b"\n"


def written(what: Any) -> bytes:
    """JSON as a browser reads it: half characters and numbers that are none may stand in a run's data."""
    return json.dumps(finite(what), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


async def soon(job: Job, seconds: float) -> tuple[str, Any] | None:
    """The next event of a job; None if there is none for so long."""
    try:
        return await asyncio.wait_for(job.events.get(), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        return None
