// A visitor on `@modelcontextprotocol/client` 2.x that compares the lists of both modes, and searches for tools.
//
//     search.mjs --mode modern --url URL QUESTIONS TOOLS
//
// QUESTIONS is a JSON file of `[question, tools that answer it]`; all tools are written to the file TOOLS. It prints the
// bytes of both lists, and the results of each question.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { readFileSync, writeFileSync } from 'node:fs';
import { check, invocation } from './report.mjs';

const { url, revision } = invocation();
const [questions, file] = process.argv.slice(-2);

async function connected(mode) {
    const client = new Client({ name: 'visitor', version: '1.0.0' }, { versionNegotiation: { mode: { pin: revision } } });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${url}?tools=${mode}`)));
    return client;
}

async function list(client) {
    const found = [];
    let cursor;
    do {
        const page = await client.listTools({ cursor });
        found.push(...page.tools);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
}

const [all, search] = [await connected('all'), await connected('search')];
const [tools, few] = [await list(all), await list(search)];
writeFileSync(file, JSON.stringify(tools));
const bytes = [tools, few].map((found) => Buffer.byteLength(JSON.stringify(found)));
const found = [];
for (const [query, wanted] of JSON.parse(readFileSync(questions))) {
    for (const name of wanted) check(tools.some((tool) => tool.name === name), `no such tool: ${name}`);
    const result = await search.callTool({ name: 'search_tools', arguments: { query, limit: 5 } });
    found.push(result.content[0].text.split('\n').map((line) => line.split('(')[0]));
}
console.log(JSON.stringify({ bytes, found }));
await Promise.all([all.close(), search.close()]);
