// A visitor on `@modelcontextprotocol/client` 2.x: it lists every tool, and calls those that it is told to.
//
//     visit.mjs --mode legacy|modern --url URL CALLS
//
// CALLS is a JSON list of `{ tool, arguments, expect }`. A tool may come late, because its server starts first.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { setTimeout as sleep } from 'node:timers/promises';
import { check, feature, invocation } from './report.mjs';

const PAUSE = 250;

const { mode, url, revision } = invocation();
const calls = JSON.parse(process.argv.at(-1));
const versionNegotiation = { mode: mode === 'modern' ? { pin: revision } : mode };
const client = new Client({ name: 'visitor', version: '1.0.0' }, { versionNegotiation });

async function names() {
    const found = [];
    let cursor;
    do {
        const page = await client.listTools({ cursor });
        found.push(...page.tools.map((tool) => tool.name));
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return found;
}

/** The names, once all of these are among them. */
async function everything(wanted) {
    const end = Date.now() + 60_000;
    for (;;) {
        const found = await names();
        const missing = wanted.filter((name) => !found.includes(name));
        if (missing.length === 0) return found;
        check(Date.now() < end, `not listed: ${missing.join(', ')}; listed: ${found.join(', ')}`);
        await sleep(PAUSE);
    }
}

await client.connect(new StreamableHTTPClientTransport(url));
await feature('negotiate', async () => {
    check(client.getNegotiatedProtocolVersion() === revision, client.getNegotiatedProtocolVersion());
    return revision;
});
await feature('list', async () => `${(await everything(calls.map(({ tool }) => tool))).length} tools`, 90_000);
for (const { tool, arguments: args, expect } of calls) {
    await feature(tool, async () => {
        const result = await client.callTool({ name: tool, arguments: args ?? {} });
        const said = JSON.stringify(result);
        check(!result.isError && said.includes(expect), `${said.slice(0, 400)} lacks ${expect}`);
    });
}
await client.close();
