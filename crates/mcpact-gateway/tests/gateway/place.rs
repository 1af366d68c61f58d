//! A gateway in this process.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use mcpact::client::{Client, ClientBuilder, Verdicts};
use mcpact_engine::client::EraMode;
use mcpact_gateway::catalog::{Catalog, Machine, Source, read};
use mcpact_gateway::{Cache, Gateway, Local, Surroundings};
use mcpact_spec::Revision;
use mcpact_transport::memory;

/// Three servers of two eras, two of them with a tag in common.
pub(crate) const CATALOG: &str = r#"
[servers.old]
builtin = "everything"
era = "2025-06-18"
tags = ["calm"]

[servers.late]
builtin = "everything"
era = "2025-11-25"
tags = ["calm", "wild"]

[servers.new]
builtin = "everything"
era = "2026-07-28"
"#;

pub(crate) fn catalog(text: &str) -> Catalog {
    let source = Source::new(
        "mcpact.toml",
        format!("[gateway]\nlisten = \"127.0.0.1:0\"\n{text}"),
    );
    let reading = read(&source, &Machine::around(Path::new(".")).unwrap());
    assert_eq!(reading.problems.len(), 0, "{:?}", reading.problems);
    reading.catalog.unwrap()
}

/// A gateway that runs as long as the test, and its address.
pub(crate) async fn gateway(text: &str) -> (Arc<Gateway>, String) {
    let everything = Local(Arc::new(|| {
        let (ours, theirs) = memory::pair();
        let server = mcpact_everything::server(&Revision::ALL);
        tokio::spawn(async move { server.serve(theirs).await });
        ours
    }));
    let surroundings = Surroundings {
        builtins: BTreeMap::from([("everything", everything)]),
        verdicts: Verdicts::new(),
        cache: Cache::nowhere(),
        guard: None,
    };
    let gateway = Gateway::new(catalog(text), surroundings).unwrap();
    let site = gateway.listen().await.unwrap();
    let origin = site.origin();
    tokio::spawn(site.run(std::future::pending()));
    (gateway, origin)
}

pub(crate) fn client(revision: Revision) -> ClientBuilder {
    Client::builder("visitor", "1").mode(EraMode::Pin(revision))
}

pub(crate) async fn tools(client: &Client) -> Vec<String> {
    let tools = client.list_tools().await.unwrap();
    tools.iter().map(|tool| tool.name.clone()).collect()
}
