// The walk through all features of `mcpact everything`, for clients on either JavaScript SDK.
//
// The two SDKs agree on most of their methods; `peer` holds what they do differently:
//   client    the SDK's client, not yet connected
//   connect() connects it
//   revision() what was negotiated
//   call(params, options) calls a tool
//   hear(method, handler) registers for a notification
//   answer(method, handler) registers for a request of the server
//   unknownResource the code that the SDK shows for a resource that is not there
//   listen(filter) opens a stream of changes, where the SDK has one
import { ears } from './ears.mjs';
import { Absent, Inbox, check, equal, feature } from './report.mjs';

const WATCHED = 'test://watched-resource';
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';
const PERSON = { username: 'ada', email: 'ada@example.org' };
const ROOT = { uri: 'file:///srv/interop', name: 'interop' };

export const CAPABILITIES = { elicitation: {}, sampling: {}, roots: { listChanged: true } };

export async function walk(peer, wanted) {
    const { client } = peer;
    const heard = ears(peer, { person: PERSON, said: 'Paris', root: ROOT });

    await feature('negotiate', async () => {
        await peer.connect();
        equal(peer.revision(), wanted, 'revision');
        equal(client.getServerVersion()?.name, 'mcpact-everything', 'name of the server');
        const capabilities = client.getServerCapabilities();
        for (const name of ['tools', 'resources', 'prompts']) check(capabilities[name], `${name} are not declared`);
        return wanted;
    });
    const modern = wanted === '2026-07-28';
    const since = (revision) => wanted >= revision;

    await feature('list', async () => {
        const tools = await everyPage((page) => client.listTools(page), 'tools');
        for (const name of ['echo', 'test_simple_text', 'test_cancellation']) check(named(tools, name), `no tool ${name}`);
        for (const tool of tools) equal(tool.inputSchema.type, 'object', `type of the arguments of ${tool.name}`);
        const prompts = await everyPage((page) => client.listPrompts(page), 'prompts');
        check(named(prompts, 'test_prompt_with_arguments'), 'no prompt test_prompt_with_arguments');
        const resources = await everyPage((page) => client.listResources(page), 'resources');
        check(resources.some(({ uri }) => uri === WATCHED), `no resource ${WATCHED}`);
        const templates = await everyPage((page) => client.listResourceTemplates(page), 'resourceTemplates');
        check(templates.length > 0, 'no templates');
        return `${tools.length} tools, ${prompts.length} prompts, ${resources.length} resources, ${templates.length} templates`;
    });

    await feature('call', async () => {
        const simple = await peer.call({ name: 'test_simple_text' });
        equal(textOf(simple), 'This is a simple text response for testing.', 'text');
        const sum = await peer.call({ name: 'add', arguments: { a: 2, b: 3 } });
        equal(sum.content[0].text, '5', 'sum');
        // Older revisions get it as one more text.
        if (since('2025-06-18')) equal(sum.structuredContent, { sum: 5 }, 'structured content');
        else equal([sum.structuredContent, JSON.parse(sum.content[1].text)], [undefined, { sum: 5 }], 'structured content');
        const image = await peer.call({ name: 'test_image_content', arguments: {} });
        equal([image.content[0].type, image.content[0].mimeType], ['image', 'image/png'], 'picture');
        const failed = await peer.call({ name: 'test_error_handling', arguments: {} });
        equal(failed.isError, true, 'isError of a failing tool');
        const unknown = await refused(peer.call({ name: 'no_such_tool', arguments: {} }));
        equal(unknown.code, -32602, 'code of an unknown tool');
        return 'text, structured content, picture, failure, unknown tool';
    });

    await feature('read', async () => {
        const [text] = (await client.readResource({ uri: 'test://static-text' })).contents;
        equal([text.mimeType, text.text], ['text/plain', 'This is the content of the static text resource.'], 'text');
        const [binary] = (await client.readResource({ uri: 'test://static-binary' })).contents;
        check(Buffer.from(binary.blob, 'base64').subarray(1, 4).toString() === 'PNG', 'the blob is no picture');
        const [made] = (await client.readResource({ uri: 'test://template/123/data' })).contents;
        equal(JSON.parse(made.text).id, '123', 'id in the template');
        const unknown = await refused(client.readResource({ uri: 'test://nowhere' }));
        equal(unknown.code, peer.unknownResource, 'code of an unknown resource');
        return 'text, blob, template, unknown resource';
    });

    await feature('prompt', async () => {
        const filled = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'one', arg2: 'two' } });
        equal(filled.messages[0].content.text, "Prompt with arguments: arg1='one', arg2='two'", 'text');
        const pictured = await client.getPrompt({ name: 'test_prompt_with_image' });
        equal(pictured.messages[0].content.type, 'image', 'content of the prompt with a picture');
        return 'arguments, picture';
    });

    await feature('complete', async () => {
        const { completion } = await client.complete({
            ref: { type: 'ref/prompt', name: 'test_prompt_with_arguments' },
            argument: { name: 'arg1', value: 'te' },
        });
        equal(completion.values, ['test1', 'test2'], 'values');
        return completion.values.join(', ');
    });

    await feature('progress', async () => {
        const steps = new Inbox();
        const call = { name: 'test_tool_with_progress', arguments: {} };
        await peer.call(call, { onprogress: (step) => steps.push(step) });
        const told = await steps.atLeast(3);
        equal(told.map(({ progress }) => progress), [0, 50, 100], 'progress');
        equal(told.map(({ total }) => total), [100, 100, 100], 'total');
        equal(told[0].message, since('2025-03-26') ? 'Completed step 0 of 100' : undefined, 'message');
        return '0, 50, 100 of 100';
    });

    await feature('cancel', async () => {
        const key = `cancel-${process.pid}`;
        const abort = new AbortController();
        const call = peer.call(
            { name: 'test_cancellation', arguments: { key } },
            { signal: abort.signal, onprogress: () => abort.abort('enough') },
        );
        await refused(call);
        const seen = await peer.call({ name: 'test_cancellation_seen', arguments: { key } });
        equal(textOf(seen), `${key} was cancelled.`, 'what the server saw');
        return 'the call was rejected here and ended at the server';
    });

    await feature('elicit', async () => {
        const asked = peer.call({ name: 'test_elicitation', arguments: { message: 'Who are you?' } });
        if (!since('2025-06-18')) {
            equal((await refused(asked)).code, -32602, 'code of a call that needs elicitation');
            throw new Absent(`${wanted} has no elicitation`);
        }
        const told = textOf(await asked).match(/^User response: action=accept, content=(.*)$/);
        check(told, 'the answer did not arrive');
        const { username, email } = JSON.parse(told[1]);
        equal({ username, email }, PERSON, 'what the tool heard');
        equal(heard.elicit.items.map(({ message }) => message), ['Who are you?'], 'questions');
        return 'asked once, the answer reached the tool';
    });

    await feature('sample', async () => {
        const told = await peer.call({ name: 'test_sampling', arguments: { prompt: 'Capital of France?' } });
        equal(textOf(told), 'LLM response: Paris', 'what the tool heard');
        const [{ messages, maxTokens }] = heard.sample.items;
        equal([[messages[0].content].flat()[0].text, maxTokens], ['Capital of France?', 100], 'question');
        return 'asked once, the answer reached the tool';
    });

    await feature('roots', async () => {
        const told = await peer.call({ name: 'test_input_required_result_list_roots', arguments: {} });
        equal(textOf(told), `1 roots: ${ROOT.uri}`, 'what the tool heard');
        equal(heard.roots.items.length, 1, 'questions');
        return 'asked once, the answer reached the tool';
    });

    await feature('log', async () => {
        const call = { name: 'test_tool_with_logging', arguments: {} };
        const at = async (level) => {
            if (modern) return peer.call({ ...call, _meta: { [LOG_LEVEL]: level } });
            await client.setLoggingLevel(level);
            return peer.call(call);
        };
        await at('warning');
        await at('info');
        const messages = await heard.log.atLeast(3);
        const texts = ['Tool execution started', 'Tool processing data', 'Tool execution completed'];
        equal(messages.map(({ data }) => data), texts, 'messages');
        equal(messages.map(({ level }) => level), ['info', 'info', 'info'], 'levels');
        return 'nothing at warning, three messages at info';
    });

    await feature('subscribe', async () => {
        const told = modern ? await listening(peer, heard) : await subscribed(client, peer, heard);
        equal(heard.updated.items.map(({ uri }) => uri), [WATCHED], 'updates');
        return told;
    });

    await client.close();
}

/** A subscription of the legacy era; the change of the tools shows that nothing is still on its way. */
async function subscribed(client, peer, heard) {
    await client.subscribeResource({ uri: WATCHED });
    await peer.call({ name: 'test_trigger_resource_update', arguments: {} });
    await heard.updated.atLeast(1);
    await client.unsubscribeResource({ uri: WATCHED });
    await peer.call({ name: 'test_trigger_resource_update', arguments: {} });
    await peer.call({ name: 'test_trigger_tool_change', arguments: {} });
    await heard.tools.atLeast(1);
    return 'one update while subscribed, none afterwards';
}

/** The same on streams of changes: the second asks for the tools only. */
async function listening(peer, heard) {
    const both = await peer.listen({ resourceSubscriptions: [WATCHED] });
    equal(both.honoredFilter.resourceSubscriptions, [WATCHED], 'what the server promised');
    await peer.call({ name: 'test_trigger_resource_update', arguments: {} });
    await heard.updated.atLeast(1);
    await both.close();
    const tools = await peer.listen({ toolsListChanged: true });
    await peer.call({ name: 'test_trigger_resource_update', arguments: {} });
    await peer.call({ name: 'test_trigger_tool_change', arguments: {} });
    await heard.tools.atLeast(1);
    await tools.close();
    return 'one update while listening for it, none afterwards';
}

async function everyPage(list, member) {
    const all = [];
    let cursor;
    do {
        const page = await list(cursor === undefined ? undefined : { cursor });
        all.push(...page[member]);
        cursor = page.nextCursor;
    } while (cursor !== undefined);
    return all;
}

async function refused(request) {
    try {
        await request;
    } catch (error) {
        return error;
    }
    throw new Error('nothing was refused');
}

function named(list, wanted) {
    return list.some(({ name }) => name === wanted);
}

function textOf(result) {
    equal(result.isError ?? false, false, 'isError');
    return result.content.map(({ text }) => text ?? '').join('');
}
