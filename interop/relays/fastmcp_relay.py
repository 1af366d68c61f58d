"""fastmcp's proxy between HTTP and a server or many: PORT and a URL, a file with `mcpServers`, or a command."""

import json
import sys

from fastmcp.client.transports import StdioTransport
from fastmcp.server import create_proxy

port, *target = sys.argv[1:]
if target[0].startswith("http://"):
    behind = target[0]
elif target[0].endswith(".json"):
    with open(target[0]) as file:
        behind = json.load(file)
else:
    behind = StdioTransport(command=target[0], args=target[1:])
relay = create_proxy(behind, mode="auto")
relay.run(
    transport="http",
    host="127.0.0.1",
    port=int(port),
    path="/mcp",
    show_banner=False,
    log_level="CRITICAL",
)
