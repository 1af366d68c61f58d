// A server of MCP Apps on `@modelcontextprotocol/ext-apps`, over stdio.
//
//     app.mjs NAME
//
// All servers have the same view and the tool `show`; the tool `refresh_NAME` is for the view only.

import { RESOURCE_MIME_TYPE, registerAppResource, registerAppTool } from '@modelcontextprotocol/ext-apps/server';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const VIEW = 'ui://view';
const name = process.argv[2];
const text = text => ({ content: [{ type: 'text', text }] });

serveStdio(() => {
    const server = new McpServer({ name, version: '1.0.0' });
    const tool = (tool, visibility, answer) =>
        registerAppTool(
            server,
            tool,
            { description: tool, inputSchema: z.object({}), _meta: { ui: { resourceUri: VIEW, visibility } } },
            () => text(answer),
        );
    tool('show', ['model', 'app'], `shown by ${name}`);
    tool(`refresh_${name}`, ['app'], `refreshed by ${name}`);
    registerAppResource(server, 'view', VIEW, {}, uri => ({
        contents: [{ uri: uri.href, mimeType: RESOURCE_MIME_TYPE, text: `<!doctype html><title>${name}</title>` }],
    }));
    return server;
});
