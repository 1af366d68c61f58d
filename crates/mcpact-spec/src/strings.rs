//! Enums of stable strings.

/// Defines an enum of stable strings. `ALL` lists its variants and `as_str` returns the string of one.
///
/// Users and scripts depend on the strings. The contract test of `mcpact-cli` pins every one of them.
///
/// ```
/// mcpact_spec::stable_strings! {
///     /// Reason of a reload.
///     pub enum Cause {
///         /// The file changed.
///         File = "file",
///         /// A user asked for it.
///         Command = "command",
///     }
/// }
///
/// assert_eq!(Cause::ALL, [Cause::File, Cause::Command]);
/// assert_eq!(Cause::Command.as_str(), "command");
/// ```
#[macro_export]
macro_rules! stable_strings {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident {
        $($(#[$doc:meta])+ $variant:ident = $text:literal,)+
    }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name { $($(#[$doc])+ $variant,)+ }

        impl $name {
            /// All variants, in table order.
            $visibility const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The stable string.
            #[must_use]
            $visibility const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    };
}
