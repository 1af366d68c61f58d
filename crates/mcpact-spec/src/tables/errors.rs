//! Error codes: when they may be sent, and under which HTTP status.

use crate::revision::{columns, pretending};
use crate::{Era, Revision};

/// Stage at which an error was found; it decides the HTTP status of some codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Site {
    /// Before the method was reached: JSON, envelope, headers, `_meta`.
    Envelope,
    /// In the method itself.
    Application,
}

macro_rules! errors {
    ($($(#[$doc:meta])+ $name:ident = $code:literal, emit [$($emit:ident)+ $(; $pretend:ident)?],
        envelope [$($env:literal)+], application [$($app:literal)+];)+) => {
        /// An error code that at least one revision defines.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ErrorCode { $($(#[$doc])+ $name,)+ }

        impl ErrorCode {
            /// All codes, in table order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)+];

            /// The number on the wire.
            #[must_use]
            pub const fn code(self) -> i64 {
                match self { $(Self::$name => $code,)+ }
            }

            /// The name of this code as it stands in the code.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name),)+ }
            }

            /// Returns whether the code may be sent under the revision; receiving is always tolerated.
            #[must_use]
            pub const fn emitted_in(self, revision: Revision) -> bool {
                let row = match self {
                    $(Self::$name => const {
                        let row = columns([$($emit),+]);
                        $(let row = pretending(row, $pretend);)?
                        row
                    },)+
                };
                row[revision.index()]
            }

            /// The HTTP status of an answer to a request that fails with this code.
            ///
            /// Toward a legacy client a JSON-RPC error travels with 200: a 404 would end its
            /// session, and a 400 on `initialize` would send it to the HTTP+SSE fallback.
            #[must_use]
            pub const fn http_status(self, revision: Revision, site: Site) -> u16 {
                let row = match (self, site) {
                    $((Self::$name, Site::Envelope) => const { columns([$($env),+]) },
                      (Self::$name, Site::Application) => const { columns([$($app),+]) },)+
                };
                row[revision.index()]
            }
        }
    };
}

/// May be sent.
const Y: bool = true;
/// Must not be sent.
const N: bool = false;

errors! {
    /// The bytes are not JSON.
    ParseError = -32700, emit [Y Y Y Y Y],
        envelope [400 400 400 400 400], application [200 200 200 200 400];
    /// The JSON is not a JSON-RPC message, or not one that may come now.
    InvalidRequest = -32600, emit [Y Y Y Y Y],
        envelope [400 400 400 400 400], application [200 200 200 200 200];
    /// The method is unknown, or its capability was not declared.
    MethodNotFound = -32601, emit [Y Y Y Y Y],
        envelope [200 200 200 200 404], application [200 200 200 200 404];
    /// The parameters do not fit the method.
    InvalidParams = -32602, emit [Y Y Y Y Y],
        envelope [200 200 200 200 400], application [200 200 200 200 200];
    /// Something failed inside.
    InternalError = -32603, emit [Y Y Y Y Y],
        envelope [200 200 200 200 200], application [200 200 200 200 200];
    /// There is no such resource; `InvalidParams` in 2026-07-28.
    ResourceNotFound = -32002, emit [Y Y Y Y N; Y],
        envelope [200 200 200 200 200], application [200 200 200 200 200];
    /// The user must visit a URL first.
    UrlElicitationRequired = -32042, emit [N N N Y N],
        envelope [200 200 200 200 200], application [200 200 200 200 200];
    /// The user rejected the sampling request.
    UserRejected = -1, emit [Y Y Y Y N],
        envelope [200 200 200 200 200], application [200 200 200 200 200];
    /// A header is missing, malformed, or differs from the body.
    HeaderMismatch = -32020, emit [N N N N Y],
        envelope [400 400 400 400 400], application [200 200 200 200 400];
    /// The request needs a client capability that it did not declare.
    MissingClientCapability = -32021, emit [N N N N Y],
        envelope [400 400 400 400 400], application [200 200 200 200 400];
    /// The version is unknown or not served.
    UnsupportedVersion = -32022, emit [N N N N Y],
        envelope [400 400 400 400 400], application [200 200 200 200 400];
}

impl ErrorCode {
    /// The code with this number.
    #[must_use]
    pub fn parse(code: i64) -> Option<Self> {
        Self::ALL.iter().copied().find(|e| e.code() == code)
    }

    /// Returns whether only a server of the modern era can have sent this code.
    #[must_use]
    pub fn proves_modern(self) -> bool {
        let is_sent_in = |era| {
            let mut revisions = Revision::ALL.into_iter();
            revisions.any(|r| r.era() == era && self.emitted_in(r))
        };
        is_sent_in(Era::Modern) && !is_sent_in(Era::Legacy)
    }
}
