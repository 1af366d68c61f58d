//! Who starts, limits, watches and stops the instances of a server.
//!
//! An *instance* is one connection to a server, with its process if it has one. What is to be done with
//! them is decided in files that know neither clock nor socket: [`instance`] is the life of one,
//! [`restart_policy`] and [`recovery`] what follows failures, [`placement`] who may use which, [`idle`] and [`health`] what
//! their names say, and `fleet` puts it together. `run` does it, `queue` is where callers wait for it, `tell` writes it down, and `handles` is
//! what others hold.

mod fleet;
mod handles;
mod health;
mod idle;
mod instance;
mod mishaps;
mod placement;
mod queue;
mod recovery;
mod restart_policy;
mod run;
mod status;
mod tell;

pub(crate) use self::fleet::UNWELL;
pub(crate) use self::handles::{InUse, Life, Running, Witness};
pub(crate) use self::health::Question;
pub(crate) use self::instance::Farewell;
pub(crate) use self::placement::{Few, Sharing, Tenant, least, most, sharing};
pub(crate) use self::run::{Connection, Starter, Supervisor};
pub(crate) use self::tell::Miss;

pub use self::instance::{InstanceId, InstanceState, StartCause, StopCause};
pub use self::status::{InstanceStatus, Mishap, ServerState, ServerStatus};
