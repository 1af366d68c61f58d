"""The walk through all features of `mcpact everything`, for clients on either Python SDK.

The two SDKs name the same things differently, in their methods and in their types. `Peer` holds the methods; what goes
in and comes out has the shape of the protocol.
"""

import base64
import json
import os
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from ears import Heard
from follow import Follow
from report import Absent, Inbox, Invocation, cause, check, equal, feature, tell

WATCHED = "test://watched-resource"
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
PERSON = {"username": "ada", "email": "ada@example.org"}
ROOT = {"uri": "file:///srv/interop", "name": "interop"}


class Peer(Protocol):
    """A connected client of either SDK."""

    revision: str
    server: dict[str, Any] | None
    capabilities: dict[str, Any] | None

    async def page(self, member: str, cursor: str | None) -> dict[str, Any]: ...
    async def call(self, name: str, arguments: Any = None, progress: Any = None, meta: Any = None) -> dict[str, Any]: ...
    async def cancel(self, name: str, arguments: dict[str, Any]) -> str:
        """Calls, waits for the first progress, and gives up; tells how."""
    async def read(self, uri: str) -> dict[str, Any]: ...
    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]: ...
    async def complete(self, prompt: str, argument: dict[str, str]) -> dict[str, Any]: ...
    async def set_level(self, level: str) -> None: ...
    async def subscribe(self, uri: str) -> None: ...
    async def unsubscribe(self, uri: str) -> None: ...
    def listen(self, **wanted: Any) -> AbstractAsyncContextManager[Any]: ...
    def code(self, error: Exception) -> int: ...


async def run(connect: Any, given: Invocation) -> None:
    """Connects and walks; `connect` takes what the server will say, and gives a peer."""
    heard = Heard(PERSON, "Paris", ROOT) if given.script is None else Follow.ears(given.script)
    is_connected = False
    try:
        async with connect(heard) as peer:
            is_connected = True
            if given.script is None:
                await Walk(peer, given.revision, heard).all()
            else:
                await Follow(peer, given.revision, heard, given.script).all()
    except Exception as error:
        if is_connected:
            raise
        tell("negotiate", "fails", cause(error))


class Walk:
    def __init__(self, peer: Peer, wanted: str, heard: Heard) -> None:
        self.peer, self.wanted, self.heard = peer, wanted, heard
        self.is_modern = wanted == "2026-07-28"

    async def all(self) -> None:
        for name in [
            "negotiate", "list", "call", "read", "prompt", "complete", "progress",
            "cancel", "elicit", "sample", "roots", "log", "subscribe",
        ]:  # fmt: skip
            await feature(name, getattr(self, name))

    async def negotiate(self) -> str:
        equal(self.peer.revision, self.wanted, "revision")
        # A client that was told the revision has asked the server for nothing.
        if self.peer.server is not None and self.peer.capabilities is not None:
            equal(self.peer.server["name"], "mcpact-everything", "name of the server")
            for capability in ["tools", "resources", "prompts"]:
                check(capability in self.peer.capabilities, f"{capability} are not declared")
        return self.wanted

    async def list(self) -> str:
        tools = await self.pages("tools")
        names = {tool["name"] for tool in tools}
        check({"echo", "test_simple_text", "test_cancellation"} <= names, f"tools are missing from {names}")
        for tool in tools:
            equal(tool["inputSchema"]["type"], "object", f"type of the arguments of {tool['name']}")
        prompts = await self.pages("prompts")
        check("test_prompt_with_arguments" in {prompt["name"] for prompt in prompts}, "no test_prompt_with_arguments")
        resources = await self.pages("resources")
        check(WATCHED in {resource["uri"] for resource in resources}, f"no resource {WATCHED}")
        templates = await self.pages("resourceTemplates")
        check(templates, "no templates")
        return f"{len(tools)} tools, {len(prompts)} prompts, {len(resources)} resources, {len(templates)} templates"

    async def pages(self, member: str) -> Any:
        page = await self.peer.page(member, None)
        everything = page[member]
        while cursor := page.get("nextCursor"):
            page = await self.peer.page(member, cursor)
            everything += page[member]
        return everything

    async def call(self) -> str:
        simple = await self.peer.call("test_simple_text")
        equal(text_of(simple), "This is a simple text response for testing.", "text")
        added = await self.peer.call("add", {"a": 2, "b": 3})
        equal(added["content"][0]["text"], "5", "sum")
        # Older revisions get it as one more text.
        if self.wanted >= "2025-06-18":
            equal(added["structuredContent"], {"sum": 5}, "structured content")
        else:
            check("structuredContent" not in added, "structured content came before its time")
            equal(json.loads(added["content"][1]["text"]), {"sum": 5}, "structured content")
        image = await self.peer.call("test_image_content", {})
        equal(image["content"][0]["mimeType"], "image/png", "picture")
        failed = await self.peer.call("test_error_handling", {})
        equal(failed["isError"], True, "isError of a failing tool")
        equal(await self.refused(self.peer.call("no_such_tool", {})), -32602, "code of an unknown tool")
        return "text, structured content, picture, failure, unknown tool"

    async def read(self) -> str:
        [text] = (await self.peer.read("test://static-text"))["contents"]
        equal(text["text"], "This is the content of the static text resource.", "text")
        [binary] = (await self.peer.read("test://static-binary"))["contents"]
        equal(base64.b64decode(binary["blob"])[1:4], b"PNG", "begin of the picture")
        [made] = (await self.peer.read("test://template/123/data"))["contents"]
        equal(json.loads(made["text"])["id"], "123", "id in the template")
        code = await self.refused(self.peer.read("test://nowhere"))
        equal(code, -32602 if self.is_modern else -32002, "code of an unknown resource")
        return "text, blob, template, unknown resource"

    async def prompt(self) -> str:
        filled = await self.peer.prompt("test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
        equal(filled["messages"][0]["content"]["text"], "Prompt with arguments: arg1='one', arg2='two'", "text")
        pictured = await self.peer.prompt("test_prompt_with_image", {})
        equal(pictured["messages"][0]["content"]["type"], "image", "content of the prompt with a picture")
        return "arguments, picture"

    async def complete(self) -> str:
        completed = await self.peer.complete("test_prompt_with_arguments", {"name": "arg1", "value": "te"})
        equal(completed["completion"]["values"], ["test1", "test2"], "values")
        return "test1, test2"

    async def progress(self) -> str:
        steps = Inbox()

        async def step(progress: float, total: float | None, message: str | None) -> None:
            steps.push((progress, total, message))

        await self.peer.call("test_tool_with_progress", {}, progress=step)
        told = await steps.at_least(3)
        equal([(progress, total) for progress, total, _ in told], [(0, 100), (50, 100), (100, 100)], "progress")
        message = "Completed step 0 of 100" if self.wanted >= "2025-03-26" else None
        equal(told[0][2], message, "message")
        return "0, 50, 100 of 100"

    async def cancel(self) -> str:
        key = f"cancel-{os.getpid()}"
        how = await self.peer.cancel("test_cancellation", {"key": key})
        seen = await self.peer.call("test_cancellation_seen", {"key": key})
        equal(text_of(seen), f"{key} was cancelled.", "what the server saw")
        return f"{how}; the call ended at the server"

    async def elicit(self) -> str:
        asked = self.peer.call("test_elicitation", {"message": "Who are you?"})
        if self.wanted < "2025-06-18":
            equal(await self.refused(asked), -32602, "code of a call that needs elicitation")
            raise Absent(f"{self.wanted} has no elicitation")
        told = await asked
        begin, _, content = text_of(told).partition("content=")
        equal(begin, "User response: action=accept, ", "action")
        equal(json.loads(content), PERSON, "what the tool heard")
        equal([params["message"] for params in self.heard.elicit.items], ["Who are you?"], "questions")
        return "asked once, the answer reached the tool"

    async def sample(self) -> str:
        told = await self.peer.call("test_sampling", {"prompt": "Capital of France?"})
        equal(text_of(told), "LLM response: Paris", "what the tool heard")
        [params] = self.heard.sample.items
        equal(params["messages"][0]["content"]["text"], "Capital of France?", "question")
        equal(params["maxTokens"], 100, "length")
        return "asked once, the answer reached the tool"

    async def roots(self) -> str:
        told = await self.peer.call("test_input_required_result_list_roots", {})
        equal(text_of(told), f"1 roots: {ROOT['uri']}", "what the tool heard")
        equal(len(self.heard.roots.items), 1, "questions")
        return "asked once, the answer reached the tool"

    async def log(self) -> str:
        for level in ["warning", "info"]:
            if not self.is_modern:
                await self.peer.set_level(level)
            await self.peer.call("test_tool_with_logging", {}, meta={LOG_LEVEL: level} if self.is_modern else None)
        messages = await self.heard.log.at_least(3)
        texts = ["Tool execution started", "Tool processing data", "Tool execution completed"]
        equal([(message["level"], message["data"]) for message in messages], [("info", t) for t in texts], "messages")
        return "nothing at warning, three messages at info"

    async def subscribe(self) -> str:
        if self.is_modern:
            return await self.listening()
        await self.peer.subscribe(WATCHED)
        await self.peer.call("test_trigger_resource_update", {})
        await self.heard.updated.at_least(1)
        await self.peer.unsubscribe(WATCHED)
        await self.peer.call("test_trigger_resource_update", {})
        # The change of the tools shows that nothing is still on its way.
        await self.peer.call("test_trigger_tool_change", {})
        await self.heard.tools.at_least(1)
        equal([params["uri"] for params in self.heard.updated.items], [WATCHED], "updates")
        return "one update while subscribed, none afterwards"

    async def listening(self) -> str:
        async with self.peer.listen(resource_subscriptions=[WATCHED]) as changes:
            await self.peer.call("test_trigger_resource_update", {})
            update = await anext(aiter(changes))
            equal(update.uri, WATCHED, "what was updated")
        async with self.peer.listen(tools_list_changed=True) as changes:
            await self.peer.call("test_trigger_resource_update", {})
            await self.peer.call("test_trigger_tool_change", {})
            change = await anext(aiter(changes))
            equal(type(change).__name__, "ToolsListChanged", "what changed")
        return "one update while listening for it, none afterwards"

    async def refused(self, request: Any) -> int:
        try:
            await request
        except Exception as error:
            return self.peer.code(error)
        raise AssertionError("nothing was refused")


def text_of(result: dict[str, Any]) -> str:
    equal(result.get("isError", False), False, f"isError of {result}")
    return "".join(block.get("text", "") for block in result["content"])
