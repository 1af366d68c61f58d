"""A server on `mcp` 1.x: `python1.py stdio|http|sse`."""

from mcp.server.fastmcp import Context, FastMCP
from mcp.types import Completion, SamplingMessage, TextContent
from pydantic import BaseModel

import fixture


class Answer(BaseModel):
    username: str
    email: str


async def tell_update(ctx, uri):
    await ctx.session.send_resource_updated(uri)


server = FastMCP("interop-python1", log_level="WARNING")
fixture.register(server, Context, Completion, tell_update)


@server._mcp_server.set_logging_level()
async def set_level(level):
    """The SDK declares logging only for servers that handle it; the level itself is not kept."""


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    answer = await ctx.elicit(message, Answer)
    return f"User response: action={answer.action}, content={answer.data.model_dump_json()}"


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    answer = await ctx.session.create_message([message], max_tokens=100)
    return f"LLM response: {answer.content.text}"


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str:
    answer = await ctx.session.list_roots()
    return f"{len(answer.roots)} roots: {', '.join(str(root.uri) for root in answer.roots)}"


fixture.serve(server)
