// What a client answers to the questions of a server, and what it hears of it.
import { Inbox } from './report.mjs';

/** Answers with `person` to a form, as far as it asks for that, with `said` for the model, and with the one `root`. */
export function ears(peer, { person, said, root }) {
    const heard = { elicit: new Inbox(), sample: new Inbox(), roots: new Inbox(), log: new Inbox(), updated: new Inbox(), tools: new Inbox() };
    peer.answer('elicitation/create', ({ params }) => {
        heard.elicit.push(params);
        const asked = Object.entries(person).filter(([name]) => name in params.requestedSchema.properties);
        return { action: 'accept', content: Object.fromEntries(asked) };
    });
    peer.answer('sampling/createMessage', ({ params }) => {
        heard.sample.push(params);
        return { model: 'interop', role: 'assistant', content: { type: 'text', text: said } };
    });
    peer.answer('roots/list', () => {
        heard.roots.push({});
        return { roots: [root] };
    });
    peer.hear('notifications/message', ({ params }) => heard.log.push(params));
    peer.hear('notifications/resources/updated', ({ params }) => heard.updated.push(params));
    peer.hear('notifications/tools/list_changed', () => heard.tools.push({}));
    return heard;
}
