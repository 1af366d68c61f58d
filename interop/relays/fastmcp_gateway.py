"""fastmcp's proxy for many servers as one: PORT and a file with `mcpServers`."""

import json
import sys

from fastmcp.server import create_proxy

port, config = sys.argv[1:]
with open(config) as file:
    gateway = create_proxy(json.load(file), mode="auto")
gateway.run(
    transport="http",
    host="127.0.0.1",
    port=int(port),
    path="/mcp",
    show_banner=False,
    log_level="CRITICAL",
)
