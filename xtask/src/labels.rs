//! Labels of the table values, the same in every output.

use mcpact_spec::{EraUse, Presence, Role, Shape};

/// A cell that holds nothing.
pub(crate) const NOTHING: &str = "–";

/// Label of a role.
pub(crate) fn role(role: Role) -> &'static str {
    match role {
        Role::Absent => NOTHING,
        Role::ClientRequest => "client request",
        Role::ServerRequest => "server request",
        Role::EitherRequest => "either request",
        Role::ClientNote => "client note",
        Role::ServerNote => "server note",
        Role::EitherNote => "either note",
        Role::EmbeddedInput => "embedded",
    }
}

/// Label of an era use.
pub(crate) fn era_use(era_use: EraUse) -> &'static str {
    match era_use {
        EraUse::LegacyOnly => "legacy only",
        EraUse::ModernOnly => "modern only",
        EraUse::Ambiguous => "both",
        EraUse::OtherCarrier => "both, carried differently",
    }
}

/// Label of a presence.
pub(crate) fn presence(presence: Presence) -> &'static str {
    match presence {
        Presence::Undefined => NOTHING,
        Presence::Defined => "yes",
        Presence::Deprecated => "deprecated",
        Presence::Implied => "implied",
        Presence::Tolerated => "tolerated",
        Presence::Removed => "removed",
    }
}

/// Label of a shape.
pub(crate) fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Object => "object",
        Shape::Flag => "boolean",
        Shape::OpenMap => "open map",
        Shape::SettingsMap => "map of settings",
    }
}
