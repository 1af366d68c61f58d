// A client on `@modelcontextprotocol/client` 2.x, which knows both eras.
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { follow } from './follow.mjs';
import { invocation } from './report.mjs';
import { CAPABILITIES, walk } from './walk.mjs';

const { mode, url, command, args, revision, script } = invocation();

/** How to make this SDK negotiate what the mode asks for. */
function negotiation() {
    if (mode === 'auto' || mode === 'legacy') return { versionNegotiation: { mode } };
    if (mode === 'modern') return { versionNegotiation: { mode: { pin: revision } } };
    return { versionNegotiation: { mode: 'legacy' }, supportedProtocolVersions: [revision] };
}

function open() {
    if (command !== undefined) return new StdioClientTransport({ command, args });
    return url.pathname.endsWith('/sse') ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
}

const client = new Client({ name: 'interop-client2', version: '1.0.0' }, { capabilities: CAPABILITIES, ...negotiation() });

const peer = {
    client,
    connect: () => client.connect(open()),
    revision: () => client.getNegotiatedProtocolVersion(),
    call: (params, options) => client.callTool(params, options),
    // It translates -32002 to the code of the modern era.
    unknownResource: -32602,
    hear: (method, handler) => client.setNotificationHandler(method, handler),
    answer: (method, handler) => client.setRequestHandler(method, handler),
    listen: (filter) => client.listen(filter),
};

await (script === undefined ? walk(peer, revision) : follow(peer, revision, script));
