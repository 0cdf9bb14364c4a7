"""Timeouts of HTTP connections: clients that keep the server waiting are closed.

uvicorn itself waits for ever, for a request and for its answer to be read. Whoever is waited for may be sent away at
any time, if all connections are taken and another client comes: so nobody can hold all of them. Requests that the
server works on are safe.
"""

from __future__ import annotations

import asyncio
import socket
from collections import Counter

from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["http_protocol_with_timeouts"]

SLOWEST = 1024  # bytes a second of an answer that a client has to read
BUFFER = 2**16  # bytes of an answer in the kernel, where nobody sees whether they are read


def http_protocol_with_timeouts(patience: float, connections: int) -> type[H11Protocol]:
    """uvicorn's HTTP with a deadline for the head of every request, a slowest pace of reading the answer, and a limit
    on connections."""

    class Hurried(H11Protocol):
        deadline: asyncio.TimerHandle | None = None  # for the head of a request
        watch: asyncio.TimerHandle | None = None  # over an answer that is read
        unread = 0  # bytes of it when the watch began
        heard = 0.0  # when the client did something, or was last given something to do

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.heard = self.loop.time()
            if (plain := transport.get_extra_info("socket")) is not None:
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
            if len(self.connections) > connections:
                victim = self.longest_waited_for()
                self.connections.discard(victim)  # it is lost later, and the next one is another
                victim.transport.abort()
            self.hurry()

        def data_received(self, data: bytes) -> None:
            self.heard = self.loop.time()
            super().data_received(data)
            self.hurry()

        # -- who has to go -----------------------------------------------------------------------------------

        def longest_waited_for(self) -> H11Protocol:
            """Of the clients with most connections, the one that the server waits for since the longest time."""
            waited_for = []
            held: Counter[str] = Counter()
            for each in self.connections:
                if isinstance(each, Hurried):
                    held[each.address()] += 1
                    if each.keeps_waiting():
                        waited_for.append(each)
            return min(waited_for, key=lambda each: (-held[each.address()], each.heard))

        def keeps_waiting(self) -> bool:
            """Whether it is the client's turn: to send a request, the rest of one, or to read an answer."""
            idle = self.cycle is None or self.cycle.response_complete or self.cycle.more_body
            return idle or self.flow.write_paused

        def address(self) -> str:
            return self.client[0] if self.client else ""

        # -- sending a request -------------------------------------------------------------------------------

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
            self.look_at_reading()

        # -- reading the answer ------------------------------------------------------------------------------

        def pause_writing(self) -> None:
            super().pause_writing()
            self.look_at_reading()

        def resume_writing(self) -> None:
            super().resume_writing()
            self.heard = self.loop.time()
            self.unread = 2**62  # the client has read enough

        def on_response_complete(self) -> None:
            self.heard = self.loop.time()
            super().on_response_complete()
            self.look_at_reading()

        def look_at_reading(self) -> None:
            """Look again later at how much of the answer is left, if anything is."""
            if self.watch is None and self.transport.get_write_buffer_size():
                self.unread = self.transport.get_write_buffer_size()
                self.watch = self.loop.call_later(patience, self.has_it_been_read)

        def has_it_been_read(self) -> None:
            self.watch = None
            left = self.transport.get_write_buffer_size()
            if self.unread - left < min(self.unread, SLOWEST * patience):
                self.transport.abort()  # close() would wait until all is read
            elif self.flow.write_paused or self.cycle is None or self.cycle.response_complete:
                self.look_at_reading()

        def connection_lost(self, exc: Exception | None) -> None:
            self.forget()
            if self.watch is not None:
                self.watch.cancel()
            super().connection_lost(exc)

    return Hurried
