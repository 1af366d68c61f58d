//! Features that leave a trace in the schema.

use mcpact_spec::Feature;

use super::comparison::{Comparison, yes_no};
use super::schema::Schema;

/// A feature and the places in the schema of which one exists if the revision has the feature.
///
/// The later schemas move the parameters of a request into a definition of their own, hence two
/// places for some.
const TRACES: &[(Feature, &[&str])] = &[
    (Feature::Initialize, &["InitializeRequest"]),
    (Feature::RequestMeta, &["RequestMetaObject"]),
    (Feature::Ping, &["PingRequest"]),
    (Feature::ServerRequests, &["ServerRequest"]),
    (Feature::Batching, &["JSONRPCBatchRequest"]),
    (
        Feature::ProgressMessage,
        &[
            "ProgressNotification/properties/params/properties/message",
            "ProgressNotificationParams/properties/message",
        ],
    ),
    (Feature::ToolAnnotations, &["ToolAnnotations"]),
    (Feature::AudioContent, &["AudioContent"]),
    (
        Feature::StructuredOutput,
        &["CallToolResult/properties/structuredContent"],
    ),
    (Feature::ResourceLinks, &["ResourceLink"]),
    (Feature::Titles, &["Tool/properties/title"]),
    (Feature::Icons, &["Tool/properties/icons"]),
    (
        Feature::CompletionContext,
        &[
            "CompleteRequest/properties/params/properties/context",
            "CompleteRequestParams/properties/context",
        ],
    ),
    (Feature::ElicitationForm, &["ElicitRequest"]),
    (Feature::ElicitationUrl, &["ElicitRequestURLParams"]),
    (
        Feature::SamplingTools,
        &[
            "CreateMessageRequest/properties/params/properties/tools",
            "CreateMessageRequestParams/properties/tools",
        ],
    ),
    (Feature::TasksCore, &["CreateTaskResult"]),
    (Feature::ResultType, &["Result/properties/resultType"]),
    (Feature::MultiRoundTrip, &["InputRequiredResult"]),
    (Feature::CacheHints, &["CacheableResult"]),
    (Feature::Listen, &["SubscriptionsListenRequest"]),
    (Feature::SessionLogLevel, &["SetLevelRequest"]),
];

/// Compares the features that the schema can show.
pub(super) fn compare(comparison: &mut Comparison, schema: &Schema) {
    for (feature, places) in TRACES {
        let shown = places.iter().any(|place| schema.has(place));
        let table = yes_no(comparison.revision().has(*feature));
        comparison.record(
            format_args!("feature {}", feature.name()),
            table,
            yes_no(shown),
        );
    }
}

#[cfg(test)]
mod tests {
    use mcpact_spec::Revision;

    use super::compare;
    use crate::oracle::comparison::Comparison;
    use crate::oracle::schema::Schema;

    fn differs(revision: Revision, definitions: &str, feature: &str) -> bool {
        let schema = Schema::parse(&format!(r#"{{"$defs": {definitions}}}"#)).unwrap();
        let mut comparison = Comparison::new(revision);
        compare(&mut comparison, &schema);
        comparison.differing().contains(&feature)
    }

    #[test]
    fn a_feature_shows_in_one_of_its_places() {
        let inline = r#"{"ProgressNotification": {"properties": {"params": {"properties": {"message": {}}}}}}"#;
        let apart = r#"{"ProgressNotificationParams": {"properties": {"message": {}}}}"#;
        let feature = "feature ProgressMessage";
        for definitions in [inline, apart] {
            assert!(!differs(Revision::V2025_03_26, definitions, feature));
            assert!(differs(Revision::V2024_11_05, definitions, feature));
        }
        assert!(differs(Revision::V2025_03_26, "{}", feature));
    }
}
