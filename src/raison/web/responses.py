"""Responses to a client: a result in one piece, lines of progress with the result at the end, or a failure."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator

from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse

from raison.core.errors import RaisonError
from raison.core.json_record import to_json_value
from raison.show.html.explanation import finite_json
from raison.web.jobs import (
    Busy,
    Client,
    Event,
    Failure,
    Job,
    Overdue,
    Progress,
    Result,
    Work,
    Workers,
)

__all__ = ["answer_when_ready", "failure_response"]

SOON = 0.4  # seconds in which an answer may come in one piece, with a status of its own
BEAT = 0.25  # seconds between two looks whether the client is still there
CLIENT_LEFT = 499


async def answer_when_ready(
    request: Request, workers: Workers, work: Work, client: Client
) -> Response:
    """The result of some work: in one piece if it comes soon, else lines of progress with the result at the end."""
    job = workers.submit(work, client)
    streaming = False
    try:
        response = await response_if_soon(request, job)
        if response is None:
            streaming = True
            response = StreamingResponse(
                progress_lines(request, workers, job), media_type="application/x-ndjson"
            )
        return response
    finally:
        if not streaming:
            workers.leave(job)


async def response_if_soon(request: Request, job: Job) -> Response | None:
    """The answer to a job that ends soon; None where it takes longer."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + SOON
    while (left := deadline - loop.time()) > 0:
        event = await next_event(job, min(left, BEAT))
        if event is None and await request.is_disconnected():
            return Response(status_code=CLIENT_LEFT)
        if isinstance(event, Result):
            if isinstance(event.value, Response):
                return event.value
            return Response(json_bytes_of_result(event.value), media_type="application/json")
        if isinstance(event, Failure):
            return failure_response(event.error)
    return None


async def progress_lines(request: Request, workers: Workers, job: Job) -> AsyncIterator[bytes]:
    """Progress and the result, a JSON object in each line; the work ends when the client leaves."""
    try:
        yield line_of_event(Progress(0, 0, "waiting"))
        while True:
            event = await next_event(job, BEAT)
            if event is not None:
                yield line_of_event(event)
            elif await request.is_disconnected():
                return
            if isinstance(event, (Result, Failure)):
                return
    finally:
        workers.leave(job)


async def next_event(job: Job, seconds: float) -> Event | None:
    """The next event of a job; None if there is none for so long."""
    try:
        return await asyncio.wait_for(job.events.get(), seconds)
    except (asyncio.TimeoutError, TimeoutError):
        return None


def line_of_event(event: Event) -> bytes:
    """An event as one line of JSON."""
    if isinstance(event, Progress):
        return json_bytes_of_result({"progress": vars(event)}) + b"\n"
    if isinstance(event, Failure):
        status = http_status_of_failure(event.error)
        return (
            json_bytes_of_result({"error": failure_sentence(event.error), "status": status}) + b"\n"
        )
    if isinstance(event.value, Response):
        return json_bytes_of_result({"file": json_line_of_file(event.value)}) + b"\n"
    return json_bytes_of_result({"result": event.value}) + b"\n"


def json_line_of_file(response: Response) -> dict[str, str]:
    """A file within a line of JSON, as base64."""
    return {
        "type": response.media_type or "",
        "data": base64.b64encode(bytes(response.body)).decode(),
    }


def failure_response(error: BaseException) -> JSONResponse:
    """A sentence with the status that fits."""
    headers = {"retry-after": str(error.seconds)} if isinstance(error, Busy) else None
    return JSONResponse({"error": failure_sentence(error)}, http_status_of_failure(error), headers)


def failure_sentence(error: BaseException) -> str:
    """What an error says to a client."""
    if isinstance(error, RaisonError):
        return str(error)
    return f"raison made a mistake of its own ({type(error).__name__}): report it."


def http_status_of_failure(error: BaseException) -> int:
    """The HTTP status of an error."""
    if isinstance(error, Busy):
        return 429
    if isinstance(error, Overdue):
        return 408
    return 400 if isinstance(error, RaisonError) else 500


def json_bytes_of_result(value: object) -> bytes:
    """JSON as a browser reads it: half characters and numbers that are none may stand in a run's data."""
    return json.dumps(
        finite_json(to_json_value(value)), ensure_ascii=False, allow_nan=False
    ).encode("utf-8", "replace")
