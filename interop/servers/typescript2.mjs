// A server on `@modelcontextprotocol/server` 2.x with the tools, resources and prompts of `mcpact everything`
// that show a feature each.
//
//     typescript2.mjs dual|modern stdio|http
//
// `dual` serves the handshake too, on HTTP with sessions. Over HTTP it says on standard output where it listens.

import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { McpServer, completable, createMcpHandler, inputRequired, inputResponse, isLegacyRequest } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const WATCHED = 'test://watched-resource';
const WORDS = ['alpha', 'beta', 'gamma', 'test1', 'test2'];

const text = text => ({ content: [{ type: 'text', text }] });
const said = text => ({ messages: [{ role: 'user', content: { type: 'text', text } }] });

/** The calls that were cancelled, and who waits to hear of one. */
const cancelled = { keys: new Set(), waiting: new Map() };

function noteCancelled(key) {
    cancelled.keys.add(key);
    cancelled.waiting.get(key)?.();
}

function untilCancelled(key) {
    if (cancelled.keys.has(key)) return Promise.resolve();
    return new Promise(resolve => cancelled.waiting.set(key, resolve));
}

/** `publish` reports an update to subscribers that have no connection of their own. */
function build(publish) {
    const server = new McpServer(
        { name: 'interop-typescript2', version: '1.0.0' },
        { capabilities: { logging: {}, resources: { subscribe: true } } },
    );
    plainTools(server, publish);
    askingTools(server);
    server.registerResource('static', 'test://static-text', { mimeType: 'text/plain' }, uri => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }],
    }));
    server.registerResource('watched', WATCHED, { mimeType: 'text/plain' }, uri => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'Watched resource content' }],
    }));
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
        server.server.setRequestHandler(method, () => ({}));
    }
    const word = completable(z.string(), value => WORDS.filter(word => word.startsWith(value)));
    server.registerPrompt(
        'test_prompt_with_arguments',
        { argsSchema: z.object({ arg1: word, arg2: z.string() }) },
        ({ arg1, arg2 }) => said(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`),
    );
    return server;
}

function plainTools(server, publish) {
    const none = z.object({});
    const keyed = z.object({ key: z.string() });
    server.registerTool('test_simple_text', { inputSchema: none }, () =>
        text('This is a simple text response for testing.'));
    server.registerTool('test_tool_with_progress', { inputSchema: none }, async (_, ctx) => {
        for (const progress of [0, 50, 100]) {
            await tell(ctx, progress, 100);
            // Clients on this SDK forget what arrives together with the answer.
            await sleep(50);
        }
        return text('The work is done.');
    });
    server.registerTool('test_tool_with_logging', { inputSchema: none }, async (_, ctx) => {
        for (const part of ['started', 'processing', 'completed']) await ctx.mcpReq.log('info', `Tool execution ${part}`);
        return text('The work is done.');
    });
    server.registerTool('test_cancellation', { inputSchema: keyed }, async ({ key }, ctx) => {
        const aborted = new Promise(resolve => ctx.mcpReq.signal.addEventListener('abort', resolve));
        await tell(ctx, 0);
        await aborted;
        noteCancelled(key);
        return text('It was cancelled.');
    });
    server.registerTool('test_cancellation_seen', { inputSchema: keyed }, async ({ key }) => {
        await untilCancelled(key);
        return text(`${key} was cancelled.`);
    });
    server.registerTool('test_trigger_resource_update', { inputSchema: none }, async () => {
        publish(WATCHED);
        await server.server.sendResourceUpdated({ uri: WATCHED });
        return text('Told.');
    });
}

async function tell(ctx, progress, total) {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    if (progressToken === undefined) return;
    await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
}

/** Tools that ask the client. Each asks by its result; on a handshake connection the SDK makes requests of that. */
function askingTools(server) {
    asking(server, 'test_elicitation', { message: z.string() },
        ({ message }) => inputRequired.elicit({
            message,
            requestedSchema: z.object({ username: z.string(), email: z.string() }),
        }),
        answer => `User response: action=${answer.action}, content=${JSON.stringify(answer.content)}`);
    asking(server, 'test_sampling', { prompt: z.string() },
        ({ prompt }) => inputRequired.createMessage({
            messages: [{ role: 'user', content: { type: 'text', text: prompt } }],
            maxTokens: 100,
        }),
        answer => `LLM response: ${[answer.result.content].flat().map(block => block.text).join('\n')}`);
    asking(server, 'test_input_required_result_list_roots', {},
        () => inputRequired.listRoots(),
        answer => `${answer.roots.length} roots: ${answer.roots.map(root => root.uri).join(', ')}`);
}

function asking(server, name, inputs, question, told) {
    server.registerTool(name, { inputSchema: z.object(inputs) }, (args, ctx) => {
        const answer = inputResponse(ctx.mcpReq.inputResponses, 'answer');
        if (answer.kind === 'missing') return inputRequired({ inputRequests: { answer: question(args) } });
        return text(told(answer));
    });
}

function overStdio(era) {
    serveStdio(() => build(() => {}), { legacy: era === 'dual' ? 'serve' : 'reject' });
}

function overHttp(era) {
    const handler = createMcpHandler(() => build(uri => handler.notify.resourceUpdated(uri)), { legacy: 'reject' });
    const modern = toNodeHandler(handler);
    const sessions = new Map();
    const legacy = async (request, response, body) => {
        const session = sessions.get(request.headers['mcp-session-id']) ?? await openSession(sessions);
        await session.handleRequest(request, response, body);
    };
    const listener = createServer(async (request, response) => {
        const body = request.method === 'POST' ? await read(request) : undefined;
        const isLegacy = era === 'dual' && await isLegacyRequest(await toWebRequest(request, body), body);
        await (isLegacy ? legacy : modern)(request, response, body);
    });
    listener.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${listener.address().port}`));
}

/** A session that is remembered as soon as the client has opened it. */
async function openSession(sessions) {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => { sessions.set(id, transport); },
    });
    await build(() => {}).connect(transport);
    return transport;
}

async function read(request) {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    return JSON.parse(Buffer.concat(chunks).toString('utf8'));
}

const [era, carrier] = process.argv.slice(2);
({ stdio: overStdio, http: overHttp })[carrier](era);
