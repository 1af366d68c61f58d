// A client on `@modelcontextprotocol/sdk` 1.x, which knows the handshake only.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { follow } from './follow.mjs';
import { invocation } from './report.mjs';
import { CAPABILITIES, walk } from './walk.mjs';

const SCHEMAS = {
    'elicitation/create': types.ElicitRequestSchema,
    'sampling/createMessage': types.CreateMessageRequestSchema,
    'roots/list': types.ListRootsRequestSchema,
    'notifications/message': types.LoggingMessageNotificationSchema,
    'notifications/resources/updated': types.ResourceUpdatedNotificationSchema,
    'notifications/tools/list_changed': types.ToolListChangedNotificationSchema,
};

const { url, command, args, revision, script } = invocation();
const client = new Client({ name: 'interop-sdk1', version: '1.0.0' }, { capabilities: CAPABILITIES });
const transport = open();
let negotiated;
transport.setProtocolVersion = keepVersion(transport.setProtocolVersion);

function open() {
    if (command !== undefined) return new StdioClientTransport({ command, args });
    return url.pathname.endsWith('/sse') ? new SSEClientTransport(url) : new StreamableHTTPClientTransport(url);
}

// The client tells the negotiated revision to nobody but its transport.
function keepVersion(tell) {
    return (version) => {
        negotiated = version;
        tell?.call(transport, version);
    };
}

const peer = {
    client,
    connect: () => client.connect(transport),
    revision: () => negotiated,
    call: (params, options) => client.callTool(params, undefined, options),
    unknownResource: -32002,
    hear: (method, handler) => client.setNotificationHandler(SCHEMAS[method], handler),
    answer: (method, handler) => client.setRequestHandler(SCHEMAS[method], handler),
};

await (script === undefined ? walk(peer, revision) : follow(peer, revision, script));
