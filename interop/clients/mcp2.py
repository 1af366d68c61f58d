"""A client on `mcp` 2.x, which knows both eras."""

import warnings
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.sse import sse_client
from mcp.client.stdio import StdioServerParameters
from pydantic import BaseModel

from ears import Heard
from report import Invocation, invocation
from walk import run

# What the modern era has left out is called on purpose.
warnings.simplefilter("ignore")


def wire(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Peer:
    def __init__(self, client: Client) -> None:
        self.client = client
        self.revision = client.protocol_version
        self.server = wire(client.server_info) if client.server_info else None
        self.capabilities = wire(client.server_capabilities)

    async def page(self, member: str, cursor: str | None) -> dict[str, Any]:
        ask = {
            "tools": self.client.list_tools,
            "prompts": self.client.list_prompts,
            "resources": self.client.list_resources,
            "resourceTemplates": self.client.list_resource_templates,
        }[member]
        return wire(await ask(cursor=cursor))

    async def call(self, name: str, arguments: Any = None, progress: Any = None, meta: Any = None) -> dict[str, Any]:
        return wire(await self.client.call_tool(name, arguments, progress_callback=progress, meta=meta))

    async def cancel(self, name: str, arguments: dict[str, Any]) -> str:
        with anyio.CancelScope() as scope:

            async def begun(*_: Any) -> None:
                scope.cancel()

            await self.call(name, arguments, progress=begun)
        return "its scope was cancelled"

    async def read(self, uri: str) -> dict[str, Any]:
        return wire(await self.client.read_resource(uri))

    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        return wire(await self.client.get_prompt(name, arguments))

    async def complete(self, prompt: str, argument: dict[str, str]) -> dict[str, Any]:
        return wire(await self.client.complete(types.PromptReference(name=prompt), argument))

    async def set_level(self, level: Any) -> None:
        await self.client.set_logging_level(level)

    async def subscribe(self, uri: str) -> None:
        await self.client.subscribe_resource(uri)

    async def unsubscribe(self, uri: str) -> None:
        await self.client.unsubscribe_resource(uri)

    def listen(self, **wanted: Any) -> Any:
        return self.client.listen(**wanted)

    def code(self, error: Exception) -> int:
        if not isinstance(error, MCPError):
            raise error
        return error.code


def target(given: Invocation) -> Any:
    if given.url is None:
        return StdioServerParameters(command=given.command[0], args=given.command[1:])
    return sse_client(given.url) if given.is_sse else given.url


def connect(given: Invocation) -> Any:
    @asynccontextmanager
    async def open(heard: Heard) -> Any:
        async def elicit(_: Any, params: Any) -> types.ElicitResult:
            return types.ElicitResult.model_validate(heard.elicited(wire(params)))

        async def sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
            return types.CreateMessageResult.model_validate(heard.sampled(wire(params)))

        async def roots(_: Any) -> types.ListRootsResult:
            return types.ListRootsResult.model_validate(heard.rooted())

        async def log(params: types.LoggingMessageNotificationParams) -> None:
            heard.log.push(wire(params))

        async def message(message: Any) -> None:
            if isinstance(message, BaseModel):
                heard.note(wire(message))

        is_over = False
        try:
            async with Client(
                target(given),
                mode=given.mode if given.mode in ("auto", "legacy") else given.revision,
                elicitation_callback=elicit,
                sampling_callback=sample,
                list_roots_callback=roots,
                logging_callback=log,
                message_handler=message,
            ) as client:
                yield Peer(client)
                is_over = True
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            # The SDK's reader of events fails on whatever arrives while it is being closed.
            if not (is_over and given.is_sse):
                raise

    return open


if __name__ == "__main__":
    given = invocation()
    anyio.run(run, connect(given), given)
