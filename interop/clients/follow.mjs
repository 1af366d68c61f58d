// The walk through a server of somebody else, by a script of `servers.toml` that says what it has to show each feature
// with. `peer` is what `walk.mjs` says.
import { ears } from './ears.mjs';
import { Absent, Inbox, check, equal, feature } from './report.mjs';

const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const PERSON = { name: 'Ada Lovelace', username: 'Ada Lovelace', email: 'ada@example.org' };

export async function follow(peer, wanted, script) {
    const { client } = peer;
    const heard = ears(peer, {
        person: PERSON,
        said: 'Paris is the capital of France.',
        root: { uri: script.root, name: 'interop' },
    });
    const modern = wanted === '2026-07-28';
    let offered = {};

    /** Calls a tool as the step says; once, or until it fits. */
    async function call(step, options, meta) {
        for (;;) {
            try {
                const params = { name: step.tool, arguments: step.arguments ?? {} };
                return contains(textOf(await peer.call(meta ? { ...params, _meta: meta } : params, options)), step.expect);
            } catch (error) {
                if (!step.eventually) throw error;
            }
        }
    }

    /** Tells what comes of the step of this name, if the script has one and the server offers what it needs. */
    const tell = (name, run, isOffered = () => true) =>
        feature(name, async () => {
            if (script[name] === undefined) throw new Absent('the server has nothing that shows it');
            if (!isOffered()) throw new Absent('the server does not declare it');
            return run(script[name]);
        });

    await feature('negotiate', async () => {
        await peer.connect();
        equal(peer.revision(), wanted, 'revision');
        offered = client.getServerCapabilities();
        check(offered.tools, 'tools are not declared');
        return wanted;
    });

    await feature('list', async () => {
        const { tools } = await client.listTools();
        check(tools.length > 0, 'no tools');
        const lists = [`${tools.length} tools`];
        if (offered.resources) {
            lists.push(`${(await client.listResources()).resources.length} resources`);
            lists.push(`${(await client.listResourceTemplates()).resourceTemplates.length} templates`);
        }
        if (offered.prompts) lists.push(`${(await client.listPrompts()).prompts.length} prompts`);
        return lists.join(', ');
    });

    await tell('call', call);
    await tell('read', async ({ uri, expect }) => {
        const { contents } = await client.readResource({ uri });
        return contains(contents.map(({ text }) => text ?? '').join('\n'), expect);
    });
    await tell('prompt', async ({ name, arguments: given, expect }) => {
        const { messages } = await client.getPrompt({ name, arguments: given });
        return contains(messages.map(({ content }) => content.text ?? '').join('\n'), expect);
    });
    await tell('complete', async ({ prompt, argument, value, expect }) => {
        const { completion } = await client.complete({
            ref: { type: 'ref/prompt', name: prompt },
            argument: { name: argument, value },
        });
        check(completion.values.includes(expect), `expected ${expect} among ${completion.values}`);
        return completion.values.join(', ');
    });
    await tell('progress', async (step) => {
        const steps = new Inbox();
        // The client of 2.x reports the rounds in which it answers questions as progress, too.
        const isOwn = ({ message }) => message?.startsWith('Fulfilling input required') ?? false;
        const onprogress = (report) => isOwn(report) || steps.push(report.progress);
        await call(step, { onprogress });
        const told = await steps.atLeast(2);
        check(told.every((value, at) => at === 0 || value > told[at - 1]), `not rising: ${told}`);
        return told.join(', ');
    });
    await tell('cancel', async (step) => {
        const abort = new AbortController();
        const options = { signal: abort.signal, onprogress: () => abort.abort('enough') };
        const cancelled = await peer.call({ name: step.tool, arguments: step.arguments }, options).catch(() => undefined);
        check(cancelled === undefined, 'it ended by itself');
        return call(step.then);
    });
    await tell('elicit', async (step) => {
        if (wanted >= '2025-06-18') return call(step);
        const answered = await call(step).catch(() => undefined);
        check(answered === undefined, 'nobody could be asked');
        throw new Absent(`${wanted} has no elicitation`);
    });
    await tell('sample', (step) => call(step));
    await tell('roots', async (step) => {
        if (!modern) return call(step);
        try {
            return await call({ ...step, eventually: false });
        } catch (error) {
            if (heard.roots.items.length > 0) throw error;
            throw new Absent('nobody asked for the roots');
        }
    });
    await tell('log', async (step) => {
        if (!modern) await client.setLoggingLevel('debug');
        const before = heard.log.items.length;
        await call(step.call, undefined, modern ? { [LOG_LEVEL]: 'debug' } : undefined);
        const messages = await heard.log.atLeast(before + 1);
        return contains(JSON.stringify(messages.map(({ data }) => data)), step.expect);
    }, () => offered.logging !== undefined);
    await tell('subscribe', async ({ uri, change }) => {
        const listening = modern ? await peer.listen({ resourceSubscriptions: [uri] }) : await client.subscribeResource({ uri });
        await call(change);
        equal((await heard.updated.atLeast(1))[0].uri, uri, 'what was updated');
        await (modern ? listening.close() : client.unsubscribeResource({ uri }));
        return uri;
    }, () => offered.resources?.subscribe === true);

    await client.close();
}

function contains(text, expected) {
    check(text.includes(expected), `expected ${expected} in ${text}`);
    return expected;
}

function textOf(result) {
    const text = result.content.map(({ text }) => text ?? '').join('\n');
    check(!result.isError, `the tool failed: ${text}`);
    return text;
}
