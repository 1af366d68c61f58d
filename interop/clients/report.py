"""What every client program on a Python SDK shares: its arguments, and one line per feature."""

import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio

# A feature that takes longer hangs.
PATIENCE = 15

REVISION_OF_MODE = {"auto": "2026-07-28", "modern": "2026-07-28", "legacy": "2025-11-25"}


@dataclass
class Invocation:
    """`[--script JSON] --mode MODE (--url URL | --stdio COMMAND ARGS...)`"""

    mode: str
    url: str | None
    command: list[str]
    script: dict[str, Any] | None

    @property
    def revision(self) -> str:
        return REVISION_OF_MODE.get(self.mode, self.mode)

    @property
    def is_sse(self) -> bool:
        return self.url is not None and self.url.endswith("/sse")


def invocation() -> Invocation:
    argv = sys.argv[1:]
    at = argv.index("--stdio") if "--stdio" in argv else len(argv)
    own, command = argv[:at], argv[at + 1 :]
    flags = dict(zip(own[::2], own[1::2]))
    script = json.loads(flags["--script"]) if "--script" in flags else None
    return Invocation(flags["--mode"], flags.get("--url"), command, script)


class Absent(Exception):
    """Raised by a feature that this SDK or this revision does not have."""


def check(holds: Any, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def equal(actual: Any, expected: Any, what: str) -> None:
    check(actual == expected, f"{what}: {actual!r} instead of {expected!r}")


async def feature(name: str, run: Callable[[], Awaitable[str]]) -> None:
    """Runs one feature, and tells how it went; the note is what the feature returns."""
    try:
        with anyio.fail_after(PATIENCE):
            tell(name, "works", await run())
    except Absent as absent:
        tell(name, "absent", str(absent))
    except TimeoutError:
        tell(name, "fails", f"nothing happened for {PATIENCE} s")
    except Exception as error:
        tell(name, "fails", cause(error))


def cause(error: BaseException) -> str:
    """The innermost reason: task groups wrap what went wrong in them."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def tell(name: str, outcome: str, note: str) -> None:
    print(json.dumps({"feature": name, "outcome": outcome, "note": note}), flush=True)


class Inbox:
    """Things that arrive by themselves: what came, and a way to wait for as many as one expects."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._more = anyio.Event()

    def push(self, item: Any) -> None:
        self.items.append(item)
        self._more.set()
        self._more = anyio.Event()

    async def at_least(self, count: int) -> list[Any]:
        while len(self.items) < count:
            await self._more.wait()
        return self.items
