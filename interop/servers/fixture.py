"""What the Python servers have in common: the parts of `mcpact everything` that show a feature each, and the carriers."""

import asyncio
import socket
import sys

import anyio
import uvicorn

WATCHED = "test://watched-resource"
WORDS = ["alpha", "beta", "gamma", "test1", "test2"]

_cancelled = {}


def _cancellation(key):
    """Is set when the call with this key was cancelled."""
    return _cancelled.setdefault(key, asyncio.Event())


def register(server, Context, Completion, tell_update):
    """Registers what needs nothing of the client; `tell_update` tells subscribers of a change."""

    @server.tool()
    def test_simple_text() -> str:
        return "This is a simple text response for testing."

    @server.tool()
    async def test_tool_with_progress(ctx: Context) -> str:
        for done in (0, 50, 100):
            await ctx.report_progress(done, 100)
            # Clients on the SDKs of TypeScript forget what arrives together with the answer.
            await anyio.sleep(0.05)
        return "The work is done."

    @server.tool()
    async def test_tool_with_logging(ctx: Context) -> str:
        for part in ("started", "processing", "completed"):
            await ctx.info(f"Tool execution {part}")
        return "The work is done."

    @server.tool()
    async def test_cancellation(key: str, ctx: Context) -> str:
        try:
            await ctx.report_progress(0)
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            _cancellation(key).set()
            raise

    @server.tool()
    async def test_cancellation_seen(key: str) -> str:
        await _cancellation(key).wait()
        return f"{key} was cancelled."

    @server.tool()
    async def test_trigger_resource_update(ctx: Context) -> str:
        await tell_update(ctx, WATCHED)
        return "Told."

    @server.resource("test://static-text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource(WATCHED, mime_type="text/plain")
    def watched() -> str:
        return "Watched resource content"

    @server.prompt()
    def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.completion()
    async def complete(ref, argument, context):
        return Completion(values=[word for word in WORDS if word.startswith(argument.value)])


def serve(server):
    """Serves on the carrier that the command line names. Over HTTP it says on standard output where it listens."""
    carrier = sys.argv[1]
    if carrier == "stdio":
        server.run(transport="stdio")
        return
    app = {"http": server.streamable_http_app, "sse": server.sse_app}[carrier]()
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])
