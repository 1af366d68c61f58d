"""Legacy server that ignores the case of keys. Arguments: which of two equal keys counts, `first` or `last`, and
further members of its tool list.

A call answers with the tool that it ran, its `path`, and the line as received.
"""

import json
import sys

LAST, MORE = sys.argv[1] == "last", "".join(sys.argv[2:])
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("open", "secret", "twice", "folded")]
SERVER = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "folding", "version": "1"},
}
RESULTS = {
    "twice": r'{"content":[{"type":"text","text":"harmless","t\u0065xt":"password"}]}',
    "folded": '{"content":[],"Content":[{"type":"text","text":"password"}]}',
}


def members(pairs):
    found = {}
    for key, value in pairs:
        if LAST or key.casefold() not in found:
            found[key.casefold()] = value
    return found


def call(params, line):
    name = params.get("name")
    if name in RESULTS:
        return RESULTS[name]
    path = params.get("arguments", {}).get("path")
    text = f"ran {name} on {path} for {line}"
    return json.dumps({"content": [{"type": "text", "text": text}]})


for line in sys.stdin:
    message = json.loads(line, object_pairs_hook=members)
    method = message.get("method")
    if method == "initialize":
        result = json.dumps(SERVER)
    elif method == "tools/list":
        result = f'{{"tools":{json.dumps(TOOLS)}{MORE}}}'
    elif method == "tools/call":
        result = call(message.get("params", {}), line.strip())
    elif method == "ping":
        result = "{}"
    else:
        continue
    identifier = json.dumps(message["id"])
    print(f'{{"jsonrpc":"2.0","id":{identifier},"result":{result}}}', flush=True)
