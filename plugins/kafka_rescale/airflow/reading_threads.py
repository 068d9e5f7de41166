"""The threads in which triggers read, apart from those that all triggers of a triggerer share.

A reading of brokers that are away blocks for half a minute. asyncio has few threads for all triggers of the
process, other teams' too. There, one dead cluster would hold up the gates, switches and alerts of all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

T = TypeVar("T")

WATCHES = ThreadPoolExecutor(128, thread_name_prefix="kafka-rescale-watch")
"""For gates, switches and pauses. Each reads once at a time, and a thread is made only if no other is idle."""

BRIDGES = ThreadPoolExecutor(16, thread_name_prefix="kafka-rescale-bridge")
"""For bridges. Each application with one has it waiting all the time, and it may be late."""


def start_reading(threads: ThreadPoolExecutor, read: Callable[..., T], *arguments: object) -> asyncio.Future[T]:
    """Start a blocking reading in one of these threads, and return its future.

    It runs in the caller's context, because Airflow keeps there which trigger's log a line belongs to.
    """
    context = copy_context()
    return asyncio.get_running_loop().run_in_executor(threads, lambda: context.run(read, *arguments))
