"""Progress as progress_log_lines of a log, where there is no terminal for a bar."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

__all__ = ["progress_log_lines"]


def progress_log_lines(every: float = 15.0) -> Callable[[int, int, str], None]:
    """A listener of `raison.core.progress`: a line every so many seconds, and whenever something was measured."""
    last = -every

    def listener(done: int, total: int, what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if ";" in what or done == total or now - last >= every:
            last = now
            print(f"{done}/{total}  {what}", file=sys.stderr, flush=True)

    return listener
