// A host of MCP Apps on `@modelcontextprotocol/ext-apps`: it accepts every tool, reads every view, and lets the view
// of each server call a tool of that server.
//
//     host.mjs --mode legacy|modern --url URL SERVER...

import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { App } from '@modelcontextprotocol/ext-apps';
import { AppBridge, RESOURCE_MIME_TYPE, getToolUiResourceUri } from '@modelcontextprotocol/ext-apps/app-bridge';
import { check, equal, feature, invocation } from './report.mjs';

const { mode, url, revision } = invocation();
const servers = process.argv.slice(process.argv.indexOf('--url') + 2);
const client = new Client(
    { name: 'host', version: '1.0.0' },
    {
        versionNegotiation: { mode: mode === 'modern' ? { pin: revision } : mode },
        capabilities: { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: [RESOURCE_MIME_TYPE] } } },
    },
);
await client.connect(new StreamableHTTPClientTransport(url));

/** The view of each server, by the tools that name it. */
const views = new Map();

await feature('tools', async () => {
    const { tools } = await client.listTools();
    equal(tools.length, 2 * servers.length, 'tools');
    for (const tool of tools) {
        const server = servers.find(name => tool.name.startsWith(`${name}__`));
        const view = getToolUiResourceUri(tool);
        check(view !== undefined, `${tool.name} has no view`);
        equal(views.get(server) ?? view, view, `view of ${tool.name}`);
        views.set(server, view);
    }
    return `${tools.length} tools`;
});

for (const server of servers) {
    const uri = views.get(server);
    const said = result => result.content.map(block => block.text).join();
    const title = read => {
        equal(read.contents[0].uri, uri, 'URI');
        equal(read.contents[0].mimeType, RESOURCE_MIME_TYPE, 'type');
        check(read.contents[0].text.includes(`<title>${server}</title>`), read.contents[0].text);
    };
    await feature(`view of ${server}`, async () => {
        title(await client.readResource({ uri }));
        return uri;
    });
    await feature(`calls of ${server}`, async () => {
        const bridge = new AppBridge(client, { name: 'host', version: '1.0.0' }, { serverTools: {}, serverResources: {} });
        const view = new App({ name: 'view', version: '1.0.0' }, {}, { autoResize: false });
        const [inside, outside] = InMemoryTransport.createLinkedPair();
        await bridge.connect(outside);
        await view.connect(inside);
        const own = await view.callServerTool({ name: `refresh_${server}`, arguments: {} });
        equal(said(own), `refreshed by ${server}`, 'original name');
        const listed = await view.callServerTool({ name: `${server}__show`, arguments: {} });
        equal(said(listed), `shown by ${server}`, 'listed name');
        title(await view.readServerResource({ uri }));
        const ambiguous = await view.callServerTool({ name: 'show', arguments: {} }).catch(error => error);
        for (const name of servers) check(String(ambiguous).includes(`${name}__show`), String(ambiguous));
        await view.close();
        return 'reached';
    });
}
await client.close();
