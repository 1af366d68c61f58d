//! Aggregation of servers of every era for clients of every revision.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod aggregated_tasks;
mod aggregation;
mod apps;
mod call_errors;
mod call_routing;
mod completion_and_log_levels;
mod idle_servers;
mod in_process;
mod instance_limit;
mod listen_streams;
mod malformed_lists;
mod merged_lists;
mod mixed_era_subscriptions;
mod notifications;
mod per_client_instances;
mod principals;
mod request_state;
mod resource_subscriptions;
mod resource_uris;
mod revision_change;
mod scripted_process;
mod skills;
mod slow_servers;
mod stable_names;
mod subscription_recovery;
#[path = "../common/targets.rs"]
mod targets;
mod unknown_extensions;
mod unknown_names;
mod unresponsive_servers;
mod uri_aliases;
mod wire;
