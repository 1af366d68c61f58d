//! System calls that the filter denies with `EACCES`.
//!
//! Landlock does not limit Unix sockets with a path, UDP, other families, multipath TCP, `listen` without `bind`, and
//! TCP Fast Open. `io_uring` creates sockets without the filtered calls.

use std::collections::BTreeMap;

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, EACCES, IPPROTO_TCP, MSG_FASTOPEN, SOCK_SEQPACKET,
    SOCK_STREAM,
};
use seccompiler::SeccompCmpOp::{Eq, MaskedEq, Ne};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch, apply_filter, sock_filter,
};

use super::SandboxLevel;

/// Bits of a socket type without its flags.
const TYPE_BITS: i32 = 0xf;

/// Calls that are always denied: `io_uring`, and the keys of the user.
const DENIED: [i64; 6] = [
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
];

/// Calls with flags that could connect without `connect`, with the index of their flags.
const SENDS: [(i64, u8); 3] = [
    (libc::SYS_sendto, 3),
    (libc::SYS_sendmsg, 2),
    (libc::SYS_sendmmsg, 3),
];

/// Returns whether the kernel has filters, and the processor is a known one.
pub(super) fn is_supported() -> bool {
    let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail");
    actions.is_ok_and(|actions| actions.contains("errno")) && architecture().is_ok()
}

/// Limits the system calls of the calling thread and the processes it starts.
pub(super) fn restrict(level: SandboxLevel) -> Result<(), seccompiler::Error> {
    apply_filter(&other_call_tables())?;
    apply_filter(&program(level)?)
}

fn architecture() -> Result<TargetArch, BackendError> {
    std::env::consts::ARCH.try_into()
}

/// Returns a filter that denies the calls of x32, which have other numbers.
fn other_call_tables() -> [sock_filter; 4] {
    const LOAD_NUMBER: u16 = 0x20;
    const JUMP_IF_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    const FIRST_X32_NUMBER: u32 = 0x4000_0000;
    const ALLOW: u32 = 0x7fff_0000;
    const DENY: u32 = 0x0005_0000 | EACCES as u32;
    let step = |code, jt, k| sock_filter { code, jt, jf: 0, k };
    [
        step(LOAD_NUMBER, 0, 0),
        step(JUMP_IF_AT_LEAST, 1, FIRST_X32_NUMBER),
        step(RETURN, 0, ALLOW),
        step(RETURN, 0, DENY),
    ]
}

/// Returns the filter of a level. Calls of other architectures kill the process.
fn program(level: SandboxLevel) -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        DENIED.iter().map(|call| (*call, Vec::new())).collect();
    rules.insert(libc::SYS_socketpair, unless_stream_pair()?);
    // Limits of other processes of the user.
    rules.insert(libc::SYS_prlimit64, vec![when([(0, Ne, 0)])?]);
    match level {
        SandboxLevel::Off | SandboxLevel::Standard => {
            rules.insert(libc::SYS_socket, unless_internet()?);
        }
        SandboxLevel::Strict => {
            rules.insert(libc::SYS_socket, unless_tcp()?);
            rules.insert(libc::SYS_listen, Vec::new());
            for (call, flags) in SENDS {
                let fast_open = when([(flags, MaskedEq(bits(MSG_FASTOPEN)), MSG_FASTOPEN)])?;
                rules.insert(call, vec![fast_open]);
            }
        }
    }
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(bits(EACCES) as u32),
        architecture()?,
    )?;
    filter.try_into()
}

/// Denies sockets other than those of the internet, and netlink beyond the list of network interfaces.
fn unless_internet() -> Result<Vec<SeccompRule>, BackendError> {
    Ok(vec![
        when([(0, Ne, AF_INET), (0, Ne, AF_INET6), (0, Ne, AF_NETLINK)])?,
        when([(0, Eq, AF_NETLINK), (2, Ne, libc::NETLINK_ROUTE)])?,
    ])
}

/// Denies sockets other than those of plain TCP, whose ports Landlock limits.
fn unless_tcp() -> Result<Vec<SeccompRule>, BackendError> {
    let mut rules = other_types(&[SOCK_STREAM])?;
    rules.push(when([(0, Ne, AF_INET), (0, Ne, AF_INET6)])?);
    rules.push(when([(2, Ne, 0), (2, Ne, IPPROTO_TCP)])?);
    Ok(rules)
}

/// Denies socket pairs that can send to other sockets.
fn unless_stream_pair() -> Result<Vec<SeccompRule>, BackendError> {
    let mut rules = other_types(&[SOCK_STREAM, SOCK_SEQPACKET])?;
    rules.push(when([(0, Ne, AF_UNIX)])?);
    Ok(rules)
}

/// Matches socket types other than these.
fn other_types(allowed: &[i32]) -> Result<Vec<SeccompRule>, BackendError> {
    let types = (0..=TYPE_BITS).filter(|kind| !allowed.contains(kind));
    types
        .map(|kind| when([(1, MaskedEq(bits(TYPE_BITS)), kind)]))
        .collect()
}

/// Matches a call if all of these arguments match.
fn when<const N: usize>(
    arguments: [(u8, SeccompCmpOp, i32); N],
) -> Result<SeccompRule, BackendError> {
    let conditions = arguments.into_iter().map(|(index, compare, value)| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, compare, bits(value))
    });
    SeccompRule::new(conditions.collect::<Result<_, _>>()?)
}

/// Returns a number of the system as the filter compares it.
fn bits(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}
