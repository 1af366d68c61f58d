//! Checks of the handshake.

use mcpact_engine::capability::CapabilitySet;
use mcpact_spec::tables::meta;
use mcpact_spec::{Method, Revision, Side};
use serde_json::Value;

use super::super::dialogue::Dialogue;
use super::{excerpt, wrong};

/// Returns the results of a method.
fn results<'d>(dialogue: &'d Dialogue<'_>, method: Method) -> impl Iterator<Item = &'d Value> {
    let results = dialogue.results();
    results.filter_map(move |(asked, result)| (asked == method).then_some(result))
}

/// Returns the results of both handshakes. A result without versions is not one of discovery.
fn handshakes<'d>(dialogue: &'d Dialogue<'_>) -> impl Iterator<Item = (Method, &'d Value)> {
    dialogue.results().filter(|(method, result)| match method {
        Method::Initialize => true,
        Method::Discover => result.get("supportedVersions").is_some(),
        _ => false,
    })
}

pub(super) fn protocol_version(dialogue: &Dialogue<'_>) -> Vec<String> {
    let versions = results(dialogue, Method::Initialize).filter_map(|result| {
        let version = result.get("protocolVersion");
        let is_text = version.is_some_and(Value::is_string);
        (!is_text).then(|| {
            format!(
                "the result of `initialize` {}",
                wrong("protocolVersion", version)
            )
        })
    });
    versions.collect()
}

/// A server answers with a version that it supports, so it must be one that exists.
pub(super) fn unknown_version(dialogue: &Dialogue<'_>) -> Vec<String> {
    let versions = results(dialogue, Method::Initialize).filter_map(|result| {
        let version = result.get("protocolVersion")?.as_str()?;
        Revision::parse(version).is_none().then(|| {
            format!(
                "the server answers `initialize` with the unknown version {}",
                excerpt(version)
            )
        })
    });
    versions.collect()
}

pub(super) fn supported_versions(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = results(dialogue, Method::Discover).filter_map(|result| {
        let versions = result.get("supportedVersions");
        let all = versions.and_then(Value::as_array);
        let is_list = all.is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string));
        (!is_list).then(|| match all {
            Some(_) => String::from("`supportedVersions` is not a list of versions"),
            None => format!(
                "the result of `server/discover` {}",
                wrong("supportedVersions", versions)
            ),
        })
    });
    faults.collect()
}

pub(super) fn server_info(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = handshakes(dialogue).filter_map(|(method, result)| {
        let info = match method {
            Method::Initialize => result.get("serverInfo"),
            // Optional in the modern era.
            _ => Some(result.get("_meta")?.get(meta::SERVER_INFO)?),
        };
        if !info.is_some_and(Value::is_object) {
            return Some(format!(
                "the result of `{method}` {}",
                wrong("serverInfo", info)
            ));
        }
        ["name", "version"].into_iter().find_map(|key| {
            let value = info.and_then(|info| info.get(key));
            let is_text = value.is_some_and(Value::is_string);
            (!is_text).then(|| format!("`serverInfo` of `{method}` {}", wrong(key, value)))
        })
    });
    faults.collect()
}

pub(super) fn capabilities(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = handshakes(dialogue).filter_map(|(method, result)| {
        let capabilities = result.get("capabilities");
        let is_object = capabilities.is_some_and(Value::is_object);
        (!is_object).then(|| {
            format!(
                "the result of `{method}` {}",
                wrong("capabilities", capabilities)
            )
        })
    });
    faults.collect()
}

pub(super) fn capability_type(dialogue: &Dialogue<'_>) -> Vec<String> {
    let declared = handshakes(dialogue).filter_map(|(_, result)| {
        let capabilities = result.get("capabilities");
        capabilities.filter(|value| value.is_object())
    });
    let faults = declared.flat_map(|capabilities| {
        let set = CapabilitySet::lenient(Side::Server, Some(&capabilities.to_string()));
        let findings: Vec<String> = set.findings().iter().map(ToString::to_string).collect();
        findings
    });
    faults.collect()
}

pub(super) fn instructions(dialogue: &Dialogue<'_>) -> Vec<String> {
    let faults = handshakes(dialogue).filter_map(|(method, result)| {
        let instructions = result.get("instructions")?;
        (!instructions.is_string()).then(|| {
            format!(
                "the result of `{method}` {}",
                wrong("instructions", Some(instructions))
            )
        })
    });
    faults.collect()
}
