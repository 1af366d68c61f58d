"""Readers of JSON in Python. Each input line is {"text": JSON text, "keys": protocol keys with those below them}.

Each output line is `unreadable`, `ambiguous`, `clear`, or `differs` where the rule finds nothing and readers disagree.
"""

import json
import sys


def fold(key):
    return key.replace("\u0130", "i").replace("\u0131", "i").casefold()


def no_constant(name):
    raise ValueError(name)


class Members(list):
    """Members of an object in their order, equal keys included."""


def load(text, hook):
    return json.loads(text, object_pairs_hook=hook, parse_constant=no_constant)


def is_ambiguous(value, keys):
    if isinstance(value, Members):
        names = [name for name, _ in value]
        if len(set(names)) < len(names):
            return True
        folded = {fold(key): key for key in keys}
        if any(folded.get(fold(name), name) != name for name in names):
            return True
        return any(is_ambiguous(below, keys.get(name) or {}) for name, below in value)
    if isinstance(value, list):
        return any(is_ambiguous(element, keys) for element in value)
    return False


def first(pairs):
    found = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found


def seen(text, keys):
    """Protocol members as each kind of reader sees them."""
    readers = [
        (dict, str),
        (first, str),
        (lambda pairs: dict((fold(key), value) for key, value in pairs), fold),
        (lambda pairs: first((fold(key), value) for key, value in pairs), fold),
    ]
    for hook, spelled in readers:
        value = load(text, hook)
        if isinstance(value, dict):
            yield {key: value.get(spelled(key)) for key in keys}


def verdict(text, keys):
    try:
        tree = load(text, Members)
    except (ValueError, RecursionError):
        return "unreadable"
    if is_ambiguous(tree, keys):
        return "ambiguous"
    # In objects below, readers that ignore case may merge keys of a tool.
    views = list(seen(text, [key for key in keys if not is_nested(tree, key)]))
    return "clear" if all(view == views[0] for view in views) else "differs"


def is_nested(tree, key):
    return isinstance(tree, Members) and any(name == key and isinstance(v, list) for name, v in tree)


for line in sys.stdin:
    task = json.loads(line)
    print(verdict(task["text"], task["keys"]), flush=True)
