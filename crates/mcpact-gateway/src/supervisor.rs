//! Starts, limits, health-checks and stops the instances of one server.
//!
//! An *instance* is one connection to a server, including its process if it has one.
//!
//! Decisions are pure: they take facts and a time, and return actions. `instance` is the state machine of one
//! instance; `placement`, `idle`, `health` and `restart_policy` hold one rule each; `instance_set` combines them for a
//! server. `driver` executes the actions and makes calls wait, `events` writes logs and metrics, and `handles` holds
//! the guards that callers keep.

mod driver;
mod events;
mod failure_log;
mod handles;
mod health;
mod idle;
mod instance;
mod instance_set;
mod placement;
mod record;
mod restart_policy;
mod status;

pub(crate) use self::driver::{ManagedConnection, Placed, Starter, Supervisor};
pub(crate) use self::handles::{CallGuard, InstanceGuard, RunningInstance};
pub(crate) use self::health::HealthProbe;
pub(crate) use self::instance::ShutdownMode;
pub(crate) use self::instance_set::HEALTH_CHECKS_FAILED;
pub(crate) use self::placement::{
    Few, InstanceSharing, OwnershipRelation, PermitState, Placement, PoolFacts, Purpose,
    SharingPolicy, SlotFacts, max_instances, min_instances, sharing_policy,
};

pub use self::instance::{InstanceId, InstanceState, StartCause, StopCause};
pub use self::status::{InstanceStatus, ServerFailure, ServerState, ServerStatus};
