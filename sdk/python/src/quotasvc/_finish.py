"""Work that goes on when its task is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

_under_way: set[asyncio.Task[Any]] = set()  # so that they are not collected


async def finish(work: Coroutine[Any, Any, T]) -> T:
    """Waits for work that must be done even if the task is cancelled: a client that leaves a stream has used what it got.

    A cancelled scope of anyio, as in Starlette, would cancel every further wait of its task. So the work gets a task of its own.
    """
    task = asyncio.get_running_loop().create_task(work)
    _under_way.add(task)
    task.add_done_callback(_done)
    return await asyncio.shield(task)


def _done(task: asyncio.Task[Any]) -> None:
    _under_way.discard(task)
    if not task.cancelled():
        task.exception()  # whoever waits gets it; nobody may
