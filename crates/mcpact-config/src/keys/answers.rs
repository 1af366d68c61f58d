//! What is answered in the place of clients.

use super::{Key, choice, text, texts};

/// The keys of `[gateway.answers]` and `[servers.NAME.answers]`.
pub const ANSWERS: &[Key] = &[
    choice(
        "elicitation",
        &["nobody", "decline", "cancel"],
        "nobody",
        "What a server gets that asks the user of such a client something: `decline`, `cancel`, or `nobody` answers.",
    ),
    text(
        "sampling",
        "The words in which a server is refused that wants to use the model of such a client; without them nobody answers.",
    ),
    texts(
        "roots",
        "The roots of such a client, such as `file:///home/ann/work`; without the key nobody answers.",
    ),
];
