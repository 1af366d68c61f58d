// What every client program on a JavaScript SDK shares: its arguments, and one line per feature.

// A feature that takes longer hangs.
const PATIENCE = 15_000;

export const REVISION_OF_MODE = { auto: '2026-07-28', modern: '2026-07-28', legacy: '2025-11-25' };

/** `[--script JSON] --mode MODE (--url URL | --stdio COMMAND ARGS...)` */
export function invocation(argv = process.argv.slice(2)) {
    const mode = valueOf(argv, '--mode');
    const stdio = argv.indexOf('--stdio');
    const [command, ...args] = stdio < 0 ? [] : argv.slice(stdio + 1);
    const url = stdio < 0 ? new URL(valueOf(argv, '--url')) : undefined;
    const script = argv[0] === '--script' ? JSON.parse(argv[1]) : undefined;
    return { mode, url, command, args, script, revision: REVISION_OF_MODE[mode] ?? mode };
}

function valueOf(argv, flag) {
    const at = argv.indexOf(flag);
    if (at < 0 || at + 1 >= argv.length) throw new Error(`${flag} is missing`);
    return argv[at + 1];
}

/** Thrown by a feature that this SDK or this revision does not have. */
export class Absent extends Error {}

export function check(holds, what) {
    if (!holds) throw new Error(what);
}

export function equal(actual, expected, what) {
    const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
    check(left === right, `${what}: ${left} instead of ${right}`);
}

/** Runs one feature, and tells how it went; the note is what the feature returns. */
export async function feature(name, run, patience = PATIENCE) {
    let timer;
    const limit = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`nothing happened for ${patience} ms`)), patience);
    });
    try {
        tell(name, 'works', await Promise.race([run(), limit]));
    } catch (error) {
        tell(name, error instanceof Absent ? 'absent' : 'fails', String(error.message ?? error));
    } finally {
        clearTimeout(timer);
    }
}

function tell(name, outcome, note) {
    process.stdout.write(`${JSON.stringify({ feature: name, outcome, note })}\n`);
}

/** Things that arrive by themselves: what came, and a way to wait for as many as one expects. */
export class Inbox {
    items = [];
    #waiting = [];

    push(item) {
        this.items.push(item);
        this.#waiting = this.#waiting.filter(({ count, resolve }) => {
            const enough = this.items.length >= count;
            if (enough) resolve(this.items);
            return !enough;
        });
    }

    atLeast(count) {
        if (this.items.length >= count) return Promise.resolve(this.items);
        return new Promise((resolve) => this.#waiting.push({ count, resolve }));
    }
}
