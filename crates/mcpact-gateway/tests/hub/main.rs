//! Servers of every era behind one hub, and clients of every revision in front of it.
#![expect(clippy::unwrap_used, reason = "a broken expectation is a failed test")]

mod along;
mod apart;
mod asleep;
mod away;
mod calls;
mod eras;
mod flawed;
mod full;
mod house;
mod late;
mod lists;
mod nested;
mod news;
mod principals;
mod scripted;
mod states;
mod steady;
mod streams;
mod stuck;
mod tasks;
mod together;
mod told;
mod turned;
mod twice;
mod unknown;
mod watched;
mod wire;
