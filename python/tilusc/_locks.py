"""Locks that a fork leaves free in the child, whichever thread of the parent holds them."""
from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_known: "weakref.WeakSet[Lock]" = weakref.WeakSet()


class Lock:
    """A lock, to be held by `with`. In a child the thread that held it does not exist, and would never give it back."""

    def __init__(self) -> None:
        self.renew()
        _known.add(self)

    def renew(self) -> None:
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()


def _renew_all() -> None:
    for lock in _known:
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
