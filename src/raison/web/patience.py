"""Connections that send nothing, or one byte now and then, are closed: uvicorn itself waits for a request for ever."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["protocol"]


def protocol(patience: float, connections: int) -> type[H11Protocol]:
    """uvicorn's HTTP with a deadline for the head of every request, and a limit on connections."""

    class Hurried(H11Protocol):
        deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > connections:
                transport.close()
            self.hurry()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self.hurry()

        def hurry(self) -> None:
            """Start the clock while a head is awaited, and stop it once that is there."""
            awaited = self.cycle is None or self.cycle.response_complete
            if awaited and self.deadline is None:
                self.deadline = self.loop.call_later(patience, self.overdue)
            elif not awaited:
                self.forget()

        def forget(self) -> None:
            if self.deadline is not None:
                self.deadline.cancel()
                self.deadline = None

        def overdue(self) -> None:
            if not self.transport.is_closing():
                self.transport.close()

        def connection_lost(self, exc: Exception | None) -> None:
            self.forget()
            super().connection_lost(exc)

    return Hurried
