"""fastmcp's BM25 search over the definitions in TOOLS: prints the five best tools for each question in QUESTIONS."""

import asyncio
import json
import sys

from fastmcp import Client, FastMCP
from fastmcp.server.transforms.search import BM25SearchTransform
from fastmcp.tools import Tool

questions, tools = (json.load(open(path)) for path in sys.argv[1:])
server = FastMCP("tools", transforms=[BM25SearchTransform(max_results=5)])
for tool in tools:
    server.add_tool(
        Tool(
            name=tool["name"],
            description=tool.get("description"),
            parameters=tool["inputSchema"],
        )
    )


async def main():
    found = []
    async with Client(server) as client:
        for query, _ in questions:
            result = await client.call_tool("search_tools", {"query": query})
            found.append([tool["name"] for tool in result.data])
    print(json.dumps(found))


asyncio.run(main())
