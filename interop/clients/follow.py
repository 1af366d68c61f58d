"""The walk through a server of somebody else, by a script of `servers.toml` that says what it has to show each feature
with. The peer is that of `walk.py`."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from ears import Heard
from report import Absent, Inbox, check, equal, feature

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
PERSON = {"name": "Ada Lovelace", "username": "Ada Lovelace", "email": "ada@example.org"}


class Follow:
    def __init__(self, peer: Any, wanted: str, heard: Heard, script: dict[str, Any]) -> None:
        self.peer, self.wanted, self.heard, self.script = peer, wanted, heard, script
        self.is_modern = wanted == "2026-07-28"

    @staticmethod
    def ears(script: dict[str, Any]) -> Heard:
        return Heard(PERSON, "Paris is the capital of France.", {"uri": script["root"], "name": "interop"})

    async def all(self) -> None:
        await feature("negotiate", self.negotiate)
        await feature("list", self.list)
        for name, show in {
            "call": self.call,
            "read": self.read,
            "prompt": self.prompt,
            "complete": self.complete,
            "progress": self.progress,
            "cancel": self.cancel,
            "elicit": self.elicit,
            "sample": self.call,
            "roots": self.roots,
            "log": self.log,
            "subscribe": self.subscribe,
        }.items():
            await feature(name, self.step(name, show))

    def step(self, name: str, show: Callable[[Any], Awaitable[str]]) -> Callable[[], Awaitable[str]]:
        async def run() -> str:
            if name not in self.script:
                raise Absent("the server has nothing that shows it")
            return await show(self.script[name])

        return run

    async def negotiate(self) -> str:
        equal(self.peer.revision, self.wanted, "revision")
        return self.wanted

    async def list(self) -> str:
        counts = {"tools": len((await self.peer.page("tools", None))["tools"])}
        check(counts["tools"], "no tools")
        for member in ["resources", "resourceTemplates", "prompts"]:
            if self.declares("prompts" if member == "prompts" else "resources"):
                counts[member] = len((await self.peer.page(member, None))[member])
        return ", ".join(f"{count} {member}" for member, count in counts.items())

    def declares(self, *path: str) -> bool:
        """A client that was told the revision has not asked for any declaration."""
        found: Any = self.peer.capabilities
        for name in path:
            found = found.get(name) if isinstance(found, dict) else None
        return found is not None and found is not False

    async def call(self, step: dict[str, Any], progress: Any = None, meta: Any = None) -> str:
        while True:
            try:
                result = await self.peer.call(step["tool"], step.get("arguments", {}), progress=progress, meta=meta)
                return contains(text_of(result), step["expect"])
            except AssertionError:
                if not step.get("eventually"):
                    raise

    async def read(self, step: dict[str, Any]) -> str:
        contents = (await self.peer.read(step["uri"]))["contents"]
        return contains("\n".join(part.get("text", "") for part in contents), step["expect"])

    async def prompt(self, step: dict[str, Any]) -> str:
        messages = (await self.peer.prompt(step["name"], step["arguments"]))["messages"]
        return contains("\n".join(message["content"].get("text", "") for message in messages), step["expect"])

    async def complete(self, step: dict[str, Any]) -> str:
        completed = await self.peer.complete(step["prompt"], {"name": step["argument"], "value": step["value"]})
        values = completed["completion"]["values"]
        check(step["expect"] in values, f"expected {step['expect']} among {values}")
        return ", ".join(values)

    async def progress(self, step: dict[str, Any]) -> str:
        steps = Inbox()

        async def note(progress: float, *_: Any) -> None:
            steps.push(progress)

        await self.call(step, progress=note)
        told = await steps.at_least(2)
        check(all(one < other for one, other in zip(told, told[1:])), f"not rising: {told}")
        return str(told)

    async def cancel(self, step: dict[str, Any]) -> str:
        how = await self.peer.cancel(step["tool"], step["arguments"])
        await self.call(step["then"])
        return how

    async def elicit(self, step: dict[str, Any]) -> str:
        if self.wanted >= "2025-06-18":
            return await self.call(step)
        try:
            await self.call(step)
        except Exception:
            raise Absent(f"{self.wanted} has no elicitation") from None
        raise AssertionError("nobody could be asked")

    async def roots(self, step: dict[str, Any]) -> str:
        if not self.is_modern:
            return await self.call(step)
        try:
            return await self.call({**step, "eventually": False})
        except AssertionError:
            if self.heard.roots.items:
                raise
            raise Absent("nobody asked for the roots") from None

    async def log(self, step: dict[str, Any]) -> str:
        if not self.is_modern:
            if not self.declares("logging"):
                raise Absent("the server does not declare it")
            await self.peer.set_level("debug")
        before = len(self.heard.log.items)
        await self.call(step["call"], meta={LOG_LEVEL: "debug"} if self.is_modern else None)
        messages = await self.heard.log.at_least(before + 1)
        return contains(json.dumps([message["data"] for message in messages]), step["expect"])

    async def subscribe(self, step: dict[str, Any]) -> str:
        if self.is_modern:
            return await self.listening(step)
        if not self.declares("resources", "subscribe"):
            raise Absent("the server does not declare it")
        await self.peer.subscribe(step["uri"])
        await self.call(step["change"])
        equal(str((await self.heard.updated.at_least(1))[0]["uri"]), step["uri"], "what was updated")
        await self.peer.unsubscribe(step["uri"])
        return str(step["uri"])

    async def listening(self, step: dict[str, Any]) -> str:
        async with self.peer.listen(resource_subscriptions=[step["uri"]]) as changes:
            if not changes.honored.resource_subscriptions:
                raise Absent("the server does not promise it")
            await self.call(step["change"])
            equal((await anext(aiter(changes))).uri, step["uri"], "what was updated")
        return str(step["uri"])


def contains(text: str, expected: str) -> str:
    check(expected in text, f"expected {expected} in {text}")
    return expected


def text_of(result: dict[str, Any]) -> str:
    text = "\n".join(block.get("text", "") for block in result["content"])
    check(not result.get("isError", False), f"the tool failed: {text}")
    return text
