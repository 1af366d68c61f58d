"""A server on `mcp` 2.x, which serves both eras: `python2.py stdio|http|sse`."""

from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import (
    Completion,
    CreateMessageResult,
    EmptyResult,
    ListRootsResult,
    SamplingMessage,
    SetLevelRequestParams,
    SubscribeRequestParams,
    TextContent,
    UnsubscribeRequestParams,
)
from pydantic import BaseModel

import fixture


class Answer(BaseModel):
    username: str
    email: str


async def tell_update(ctx, uri):
    """The two eras have subscribers of their own."""
    await ctx.notify_resource_updated(uri)
    await ctx.session.send_resource_updated(uri)


server = MCPServer("interop-python2", log_level="WARNING")
fixture.register(server, Context, Completion, tell_update)


async def agree(ctx, params):
    return EmptyResult()


for method, params in [
    ("logging/setLevel", SetLevelRequestParams),
    ("resources/subscribe", SubscribeRequestParams),
    ("resources/unsubscribe", UnsubscribeRequestParams),
]:
    server._lowlevel_server.add_request_handler(method, params, agree)


def ask_user(message: str):
    return Elicit(message, Answer)


def ask_model(prompt: str):
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    return Sample([message], max_tokens=100)


def ask_roots():
    return ListRoots()


@server.tool()
async def test_elicitation(message: str, answer: Annotated[Answer, Resolve(ask_user)]) -> str:
    return f"User response: action=accept, content={answer.model_dump_json()}"


@server.tool()
async def test_sampling(prompt: str, answer: Annotated[CreateMessageResult, Resolve(ask_model)]) -> str:
    return f"LLM response: {answer.content.text}"


@server.tool()
async def test_input_required_result_list_roots(answer: Annotated[ListRootsResult, Resolve(ask_roots)]) -> str:
    return f"{len(answer.roots)} roots: {', '.join(str(root.uri) for root in answer.roots)}"


fixture.serve(server)
