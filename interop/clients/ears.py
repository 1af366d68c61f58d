"""What a client answers to the questions of a server, and what it hears of it."""

from dataclasses import dataclass, field
from typing import Any

from report import Inbox


@dataclass
class Heard:
    """What the server said by itself; `person`, `said` and `root` are the answers to its questions."""

    person: dict[str, str]
    said: str
    root: dict[str, str]
    elicit: Inbox = field(default_factory=Inbox)
    sample: Inbox = field(default_factory=Inbox)
    roots: Inbox = field(default_factory=Inbox)
    log: Inbox = field(default_factory=Inbox)
    updated: Inbox = field(default_factory=Inbox)
    tools: Inbox = field(default_factory=Inbox)

    def elicited(self, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a form: what is known of the person, as far as it is asked for."""
        self.elicit.push(params)
        asked = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: text for name, text in self.person.items() if name in asked}}

    def sampled(self, params: dict[str, Any]) -> dict[str, Any]:
        self.sample.push(params)
        return {"model": "interop", "role": "assistant", "content": {"type": "text", "text": self.said}}

    def rooted(self) -> dict[str, Any]:
        self.roots.push({})
        return {"roots": [self.root]}

    def note(self, notification: dict[str, Any]) -> None:
        """Takes a notification as it stands on the wire."""
        if notification["method"] == "notifications/resources/updated":
            self.updated.push(notification["params"])
        if notification["method"] == "notifications/tools/list_changed":
            self.tools.push({})
