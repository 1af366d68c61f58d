/// Parameters for requests; the last one is not an object.
pub const PARAMS: &[Option<&str>] = &[
    None,
    Some("{}"),
    Some(r#"{"name":"t","uri":"a:b","taskId":"7"}"#),
    Some(r#"{"name":"t","task":{"ttl":1}}"#),
    Some(r#"{"mode":"url","url":"https://a"}"#),
    Some(r#"{"mode":"form"}"#),
    Some(r#"{"tools":[]}"#),
    Some(r#"{"toolChoice":{}}"#),
    Some(r#"{"includeContext":"allServers"}"#),
    Some(r#"{"level":"debug"}"#),
    Some(r#"{"level":"error"}"#),
    Some(r#"{"progressToken":"p","progress":1}"#),
    Some(r#"{"_meta":{"progressToken":"p"}}"#),
    Some(r#"{"name":"t","_meta":{"io.modelcontextprotocol/logLevel":"warning"}}"#),
    Some(r#"{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["a:b"]}}"#),
    Some(r#"{"notifications":{"promptsListChanged":true,"resourcesListChanged":true}}"#),
    Some(r#"{"requestId":1}"#),
    Some("[1]"),
];

/// Log levels in [`PARAMS`], mildest first.
pub(super) const LEVELS: [&str; 3] = ["debug", "warning", "error"];

/// Severity of the level at this key.
pub(super) fn level(params: Option<&str>, key: &str) -> Option<usize> {
    let params = params?;
    LEVELS
        .iter()
        .position(|level| params.contains(&format!("\"{key}\":\"{level}\"")))
}

/// Returns whether parameters name the resource of [`PARAMS`].
pub(super) fn names_the_resource(params: Option<&str>) -> bool {
    params.is_some_and(|params| params.contains(r#""uri":"a:b""#))
}
