//! The two bodies of the legacy handshake.

use alloc::borrow::Cow;
use alloc::string::String;

use super::fault::{BodyFault, object, optional_text};
use super::implementation::Implementation;
use crate::raw::ObjectWriter;

/// The `params` of `initialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitializeParams<'a> {
    /// Version that the client wrote; absent only if it wrote none.
    pub protocol_version: Option<Cow<'a, str>>,
    /// The raw capability document, of whatever kind it is.
    pub capabilities: Option<&'a str>,
    /// Name and version of the client.
    pub client_info: Implementation,
}

/// The version member of `initialize`, read before anything else so that a bad version is the
/// first thing a peer hears about.
///
/// # Errors
/// `params` is not an object, or the version is there and not a string.
pub fn requested_version(params: Option<&str>) -> Result<Option<Cow<'_, str>>, BodyFault> {
    let body = object("params", params)?;
    optional_text(&body, "protocolVersion")
}

impl<'a> InitializeParams<'a> {
    /// Reads the parameters of an `initialize` request.
    ///
    /// # Errors
    /// The version is not a string, or the client does not say who it is. Whether a missing version
    /// or a strange capability document is acceptable is for the engine to decide.
    pub fn parse(params: Option<&'a str>) -> Result<Self, BodyFault> {
        let body = object("params", params)?;
        Ok(Self {
            protocol_version: requested_version(params)?,
            capabilities: body.get("capabilities"),
            client_info: Implementation::parse("clientInfo", body.get("clientInfo"))?,
        })
    }
}

/// Writes the parameters of an `initialize` request.
#[must_use]
pub fn encode_params(version: &str, capabilities: &str, client_info: &str) -> String {
    ObjectWriter::new()
        .text("protocolVersion", version)
        .raw("capabilities", capabilities)
        .raw("clientInfo", client_info)
        .finish()
}

/// The `result` of `initialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitializeResult<'a> {
    /// Version that the server wrote.
    pub protocol_version: Cow<'a, str>,
    /// The raw capability document, of whatever kind it is.
    pub capabilities: Option<&'a str>,
    /// Name and version of the server.
    pub server_info: Implementation,
    /// A hint for the model.
    pub instructions: Option<Cow<'a, str>>,
}

impl<'a> InitializeResult<'a> {
    /// Reads the result of an `initialize` request.
    ///
    /// # Errors
    /// The first member that is missing or of the wrong kind.
    pub fn parse(result: &'a str) -> Result<Self, BodyFault> {
        let body = object("result", Some(result))?;
        let version = body.get_str("protocolVersion").ok_or_else(|| {
            BodyFault::at("protocolVersion", "a string", body.get("protocolVersion"))
        })?;
        Ok(Self {
            protocol_version: version,
            capabilities: body.get("capabilities"),
            server_info: Implementation::parse("serverInfo", body.get("serverInfo"))?,
            instructions: optional_text(&body, "instructions")?,
        })
    }
}

/// Writes the result of an `initialize` request.
#[must_use]
pub fn encode_result(
    version: &str,
    capabilities: &str,
    server_info: &str,
    instructions: Option<&str>,
) -> String {
    ObjectWriter::new()
        .text("protocolVersion", version)
        .raw("capabilities", capabilities)
        .raw("serverInfo", server_info)
        .maybe_text("instructions", instructions)
        .finish()
}
