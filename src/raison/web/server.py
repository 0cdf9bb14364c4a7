"""The server: an application whose routes serve the page, its modules, and the questions that it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.resources import files

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from raison import __version__
from raison.core.errors import RaisonError
from raison.core.json_record import JsonObject
from raison.models.protocol import Model
from raison.web import schemas
from raison.web.catalogue import describe_model_in_catalogue, read_catalogue
from raison.web.exporting import export_response
from raison.web.guard import CLIENT, Guard
from raison.web.handlers import Handlers
from raison.web.jobs import Work, Workers
from raison.web.responses import answer_when_ready, failure_response
from raison.web.runs import PageRequest, RunFolders
from raison.web.server_limits import ServerSettings

__all__ = ["application"]

TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
}
FAILURES: dict[int | str, JsonObject] = {
    400: {"description": "What was asked for can't be had: one sentence says why."},
    401: {"description": "A token is needed."},
    408: {"description": "The request came too slowly."},
    413: {"description": "The request is too large."},
    422: {"description": "The request is not of this shape."},
    429: {"description": "Too many requests wait; Retry-After says how long."},
    500: {"description": "A mistake of raison's own."},
}


def application(models: Mapping[str, Model], settings: ServerSettings, runs: RunFolders) -> Guard:
    """The whole server as one ASGI application."""
    workers = Workers(settings.workers, settings.waiting, settings.seconds)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        workers.close()

    app = FastAPI(
        title="raison", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", responses=FAILURES,
    )  # fmt: skip
    app.state.workers = workers
    add_error_handlers_to_server(app)
    add_page_to_server(app)
    add_route_about_server(app, models, settings, runs)
    routes = Routes(workers, Handlers(models, settings), runs)
    routes.add_questions(app)
    routes.add_runs(app)
    return Guard(app, settings)


def add_error_handlers_to_server(app: FastAPI) -> None:
    """Every error is one sentence with a status."""

    @app.exception_handler(RaisonError)
    async def refused(_: Request, error: RaisonError) -> JSONResponse:
        return failure_response(error)

    @app.exception_handler(Exception)
    async def own_mistake(_: Request, error: Exception) -> JSONResponse:
        return failure_response(error)

    @app.exception_handler(RequestValidationError)
    async def wrong_shape(_: Request, error: RequestValidationError) -> JSONResponse:
        first, *others = error.errors()
        names = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
        name = names[0] if names else "The request"
        reason = f"is refused ({first['msg']})"
        if others:
            reason = "is not of the right shape"
        sentence = f"{name} {reason}."
        return JSONResponse({"error": sentence[:500]}, 422)

    @app.exception_handler(HTTPException)
    async def no_such_route(_: Request, error: HTTPException) -> JSONResponse:
        return JSONResponse({"error": str(error.detail)}, error.status_code, error.headers)


def add_page_to_server(app: FastAPI) -> None:
    """The page and the files that it is made of."""
    assets = {}
    for path in (files("raison") / "page").iterdir():
        if path.is_file():
            assets[path.name] = path.read_bytes()

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return await asset("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def asset(name: str) -> Response:
        ending = name[name.rfind(".") :]
        if name not in assets or ending not in TYPES:
            raise HTTPException(404, "There is no such file.")
        return Response(
            assets[name], media_type=TYPES[ending], headers={"cache-control": "no-cache"}
        )


def add_route_about_server(
    app: FastAPI, models: Mapping[str, Model], settings: ServerSettings, runs: RunFolders
) -> None:
    """What can be asked for; read once, when the server starts."""
    known = {
        "version": __version__,
        **asdict(read_catalogue()),
        "models": [asdict(describe_model_in_catalogue(model)) for model in models.values()],
        "limits": {
            "characters": settings.characters,
            "steps": settings.steps,
            "methods": settings.methods,
            "seconds": settings.seconds,
        },
    }

    @app.get("/api/about")
    async def about() -> JsonObject:
        """Models, methods, searches, rules, runs and limits."""
        return {**known, "runs": runs.names()}


@dataclass(frozen=True)
class Routes:
    """The questions that the page asks; each is work for a thread."""

    workers: Workers
    handlers: Handlers
    runs: RunFolders

    async def answer(self, request: Request, work: Work) -> Response:
        return await answer_when_ready(request, self.workers, work, request.scope[CLIENT])

    def add_questions(self, app: FastAPI) -> None:
        """Questions about a text, and files of what was answered."""
        answer = self.answer
        handlers = self.handlers

        @app.post("/api/predict")
        async def predict(request: Request, body: schemas.Predict) -> object:
            """What a model says about a text, and the tokens of the text."""
            return await answer(request, handlers.predict(body))

        @app.post("/api/explain")
        async def explain(request: Request, body: schemas.Explain) -> object:
            """Scores by one method or several."""
            return await answer(request, handlers.explain(body))

        @app.post("/api/rationalize")
        async def rationalize(request: Request, body: schemas.Rationalize) -> object:
            """The smallest part of the text that is enough."""
            return await answer(request, handlers.rationalize(body))

        @app.post("/api/ground")
        async def ground(request: Request, body: schemas.Ground) -> object:
            """An answer over passages, and what it rests on."""
            return await answer(request, handlers.ground(body))

        @app.post("/api/trust")
        async def trusted(request: Request, body: schemas.Trusted) -> object:
            """How far one explanation can be trusted."""
            return await answer(request, handlers.trust(body))

        @app.post("/api/remove")
        async def remove(request: Request, body: schemas.Remove) -> object:
            """What the model says when some units are removed."""
            return await answer(request, handlers.remove(body))

        @app.post("/api/heads")
        async def heads(request: Request, body: schemas.Heads) -> object:
            """Attention heads, and the explanation with some of them switched off."""
            return await answer(request, handlers.heads(body))

        @app.post("/api/export")
        async def export(request: Request, body: schemas.Export) -> object:
            """Explanations as one HTML file, SVG or PNG."""
            return await answer(request, lambda: export_response(body))

    def add_runs(self, app: FastAPI) -> None:
        """Looking at runs that were named when the server started."""
        answer = self.answer
        runs = self.runs

        @app.get("/api/runs/{name}")
        async def run(
            request: Request, name: str, method: str = "", sort: str = "index", down: bool = False, find: str = "",
            start: int = 0, count: int = 50,
        ) -> object:  # fmt: skip
            """Examples of a run, sorted and filtered."""
            wanted = PageRequest(
                method=method, sort=sort, down=down, find=find, start=start, count=count
            )
            return await answer(request, lambda: runs.page(name, wanted))

        @app.get("/api/runs/{name}/{index}")
        async def example(request: Request, name: str, index: int) -> object:
            """All explanations of one example of a run."""
            return await answer(request, lambda: runs.example(name, index))
