"""A client on `mcp` 1.x, which knows the handshake only."""

from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp.types as types
from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from pydantic import AnyUrl, BaseModel

from ears import Heard
from report import Invocation, invocation
from walk import run


def wire(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Peer:
    def __init__(self, session: ClientSession, opened: types.InitializeResult) -> None:
        self.session = session
        self.revision = str(opened.protocolVersion)
        self.server = wire(opened.serverInfo)
        self.capabilities = wire(opened.capabilities)

    async def page(self, member: str, cursor: str | None) -> dict[str, Any]:
        ask = {
            "tools": self.session.list_tools,
            "prompts": self.session.list_prompts,
            "resources": self.session.list_resources,
            "resourceTemplates": self.session.list_resource_templates,
        }[member]
        return wire(await ask(params=types.PaginatedRequestParams(cursor=cursor)))

    async def call(self, name: str, arguments: Any = None, progress: Any = None, meta: Any = None) -> dict[str, Any]:
        return wire(await self.session.call_tool(name, arguments, progress_callback=progress, meta=meta))

    async def cancel(self, name: str, arguments: dict[str, Any]) -> str:
        # The SDK forgets a call that is given up and tells nobody, so that is done by hand.
        number = self.session._request_id
        async with anyio.create_task_group() as group:

            async def begun(*_: Any) -> None:
                params = types.CancelledNotificationParams(requestId=number, reason="enough")
                note = types.CancelledNotification(params=params)
                await self.session.send_notification(types.ClientNotification(note))
                group.cancel_scope.cancel()

            await self.call(name, arguments, progress=begun)
        return "notified by hand"

    async def read(self, uri: str) -> dict[str, Any]:
        return wire(await self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        return wire(await self.session.get_prompt(name, arguments))

    async def complete(self, prompt: str, argument: dict[str, str]) -> dict[str, Any]:
        reference = types.PromptReference(type="ref/prompt", name=prompt)
        return wire(await self.session.complete(reference, argument))

    async def set_level(self, level: Any) -> None:
        await self.session.set_logging_level(level)

    async def subscribe(self, uri: str) -> None:
        await self.session.subscribe_resource(AnyUrl(uri))

    async def unsubscribe(self, uri: str) -> None:
        await self.session.unsubscribe_resource(AnyUrl(uri))

    def listen(self, **wanted: Any) -> Any:
        raise NotImplementedError("streams of changes came with 2026-07-28")

    def code(self, error: Exception) -> int:
        if not isinstance(error, McpError):
            raise error
        return error.error.code


def transport(given: Invocation) -> Any:
    if given.url is None:
        return stdio_client(StdioServerParameters(command=given.command[0], args=given.command[1:]))
    return sse_client(given.url) if given.is_sse else streamable_http_client(given.url)


def connect(given: Invocation) -> Any:
    @asynccontextmanager
    async def open(heard: Heard) -> Any:
        async def elicit(_: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
            return types.ElicitResult.model_validate(heard.elicited(wire(params)))

        async def sample(_: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
            return types.CreateMessageResult.model_validate(heard.sampled(wire(params)))

        async def roots(_: Any) -> types.ListRootsResult:
            return types.ListRootsResult.model_validate(heard.rooted())

        async def log(params: types.LoggingMessageNotificationParams) -> None:
            heard.log.push(wire(params))

        async def message(message: Any) -> None:
            if isinstance(message, types.ServerNotification):
                heard.note(wire(message))

        async with transport(given) as (reader, writer, *_):
            async with ClientSession(
                reader,
                writer,
                elicitation_callback=elicit,
                sampling_callback=sample,
                list_roots_callback=roots,
                logging_callback=log,
                message_handler=message,
            ) as session:
                yield Peer(session, await session.initialize())

    return open


if __name__ == "__main__":
    given = invocation()
    # The SDK always offers its latest revision; there is no option for another.
    types.LATEST_PROTOCOL_VERSION = given.revision
    anyio.run(run, connect(given), given)
