//! Client of a connection, and the users of this machine that a listener serves.
//!
//! Every process of a machine can connect to loopback. On Linux, the kernel knows the owner of the client's socket:
//! over a Unix socket by `SO_PEERCRED`, over TCP by `sock_diag`, or by `/proc/net/tcp` where netlink is not available.

use std::fmt;
use std::net::SocketAddr;

/// Users of this machine that a listener serves: its own, root, and those listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalUsers {
    own: u32,
    others: Vec<u32>,
}

/// Reason for rejecting a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForeignUser<'a> {
    users: &'a LocalUsers,
    /// `None`: it cannot be determined.
    uid: Option<u32>,
}

/// Client of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Peer {
    /// Address; none over a Unix socket.
    pub(super) address: Option<SocketAddr>,
    /// User id, if it is known.
    pub(super) uid: Option<u32>,
}

impl LocalUsers {
    /// Serves this process's own user, root, and these user ids.
    #[must_use]
    pub fn and(others: impl Into<Vec<u32>>) -> Self {
        Self {
            #[cfg(unix)]
            own: rustix::process::geteuid().as_raw(),
            #[cfg(not(unix))]
            own: 0,
            others: others.into(),
        }
    }

    /// Mode of a Unix socket: other users can connect only if some are listed. The check of their ids follows.
    #[cfg(unix)]
    pub(super) const fn socket_mode(&self) -> u32 {
        match self.others.is_empty() {
            true => 0o600,
            false => 0o666,
        }
    }

    fn check(&self, uid: Option<u32>) -> Result<(), ForeignUser<'_>> {
        match uid {
            Some(uid) if uid == 0 || uid == self.own || self.others.contains(&uid) => Ok(()),
            Some(_) | None => Err(ForeignUser { users: self, uid }),
        }
    }
}

impl fmt::Display for ForeignUser<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.uid {
            Some(uid) => write!(f, "this request comes from user id {uid}")?,
            None => f.write_str("the user of this connection cannot be determined")?,
        }
        let LocalUsers { own, others } = self.users;
        match others.as_slice() {
            [] => write!(f, "; this server serves only user id {own}. ")?,
            others => {
                write!(f, "; this server serves only the user ids {own}")?;
                others.iter().try_for_each(|uid| write!(f, ", {uid}"))?;
                f.write_str(". ")?;
            }
        }
        f.write_str(match self.uid {
            Some(_) => "Add the user to `allow_users`, or set `token`",
            None => "Set `token`, or `allow_remote` to serve everyone who can connect",
        })
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.address, self.uid) {
            (Some(address), _) => address.fmt(f),
            (None, Some(uid)) => write!(f, "user id {uid}"),
            (None, None) => f.write_str("unknown"),
        }
    }
}

/// Addresses or credentials of an accepted connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// Over TCP.
    Tcp {
        peer: SocketAddr,
        local: Option<SocketAddr>,
    },
    /// Over a Unix socket.
    #[cfg(unix)]
    Unix { uid: Option<u32> },
}

/// Users that a listener serves, and the source of the user ids of its clients.
#[derive(Debug)]
pub(super) struct LocalClients {
    /// `None`: everyone who can connect.
    users: Option<LocalUsers>,
    #[cfg(target_os = "linux")]
    owners: Option<linux::SocketOwners>,
}

impl LocalClients {
    /// Clients of a TCP listener. Their user ids are looked up only if they decide.
    #[cfg(target_os = "linux")]
    pub(super) fn over_tcp(listener: SocketAddr, users: Option<LocalUsers>) -> Self {
        let owners = users.is_some();
        let owners = owners.then(|| linux::SocketOwners::beside(listener));
        Self { users, owners }
    }

    /// Clients of a TCP listener: only Linux tells the owner of a socket.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn over_tcp(_: SocketAddr, _: Option<LocalUsers>) -> Self {
        Self { users: None }
    }

    /// Clients of a Unix socket.
    #[cfg(unix)]
    pub(super) fn over_unix(users: Option<LocalUsers>) -> Self {
        Self {
            users,
            #[cfg(target_os = "linux")]
            owners: None,
        }
    }

    /// Returns the client of an accepted connection.
    pub(super) async fn identify(&self, client: Client) -> Peer {
        match client {
            Client::Tcp { peer, local } => Peer {
                address: Some(peer),
                uid: self.owner(peer, local).await,
            },
            #[cfg(unix)]
            Client::Unix { uid } => Peer { address: None, uid },
        }
    }

    #[cfg(target_os = "linux")]
    async fn owner(&self, peer: SocketAddr, local: Option<SocketAddr>) -> Option<u32> {
        self.owners.as_ref()?.of(peer, local?).await
    }

    #[cfg(not(target_os = "linux"))]
    async fn owner(&self, _: SocketAddr, _: Option<SocketAddr>) -> Option<u32> {
        None
    }

    /// Checks the user of a client.
    pub(super) fn check(&self, uid: Option<u32>) -> Result<(), ForeignUser<'_>> {
        let users = self.users.as_ref();
        users.map_or(Ok(()), |users| users.check(uid))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, BufRead as _, BufReader};
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    use rustix::net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send,
        socket_with,
    };

    /// Owners of the sockets in this network namespace.
    #[derive(Debug)]
    pub(super) struct SocketOwners {
        source: Source,
        /// Reads `/proc/net/tcp` for one connection at a time: each reading takes time with the number of sockets.
        reading: tokio::sync::Mutex<()>,
        /// User id that stands for all users outside this user namespace.
        unmapped: Option<u32>,
    }

    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Source {
        SockDiag,
        Proc,
    }

    /// A socket with its owner.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct Socket {
        /// 0 after its process has closed it; the user id is 0 then as well.
        inode: u64,
        uid: u32,
    }

    /// The kernel's default for `/proc/sys/kernel/overflowuid`.
    const OVERFLOW_UID: u32 = 65534;

    impl SocketOwners {
        /// Selects the source by a lookup of the listener's own socket.
        pub(super) fn beside(listener: SocketAddr) -> Self {
            let any = match listener {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            let source = match sock_diag(listener, SocketAddr::new(any, 0)) {
                Ok(Some(_)) => Source::SockDiag,
                Ok(None) | Err(_) => Source::Proc,
            };
            tracing::debug!(?source, "source of socket owners");
            let map = std::fs::read_to_string("/proc/self/uid_map").unwrap_or_default();
            Self {
                source,
                reading: tokio::sync::Mutex::default(),
                unmapped: (!maps_every_user(&map)).then_some(OVERFLOW_UID),
            }
        }

        /// Returns the user id of the client at `peer`, connected to `local`.
        pub(super) async fn of(&self, peer: SocketAddr, local: SocketAddr) -> Option<u32> {
            let found = match self.source {
                Source::SockDiag => sock_diag(peer, local),
                Source::Proc => {
                    let _turn = self.reading.lock().await;
                    let reading = tokio::task::spawn_blocking(move || proc_net_tcp(peer, local));
                    reading.await.unwrap_or_else(|error| Err(error.into()))
                }
            };
            let socket = found.unwrap_or_else(|error| {
                tracing::debug!(%error, %peer, "no owner of a socket");
                None
            })?;
            // An orphaned socket shows user id 0.
            (socket.inode != 0 && Some(socket.uid) != self.unmapped).then_some(socket.uid)
        }
    }

    fn maps_every_user(map: &str) -> bool {
        map.split_whitespace().eq(["0", "0", "4294967295"])
    }

    /// `SOCK_DIAG_BY_FAMILY`.
    const BY_FAMILY: u16 = 20;
    /// `NLM_F_REQUEST`.
    const REQUEST: u16 = 1;
    /// Netlink header, and `inet_diag_req_v2` after it.
    const HEADER: usize = 16;
    const REQUEST_SIZE: usize = HEADER + 56;
    /// Offsets in `inet_diag_msg`.
    const PORTS: usize = HEADER + 4;
    const UID: usize = HEADER + 64;
    const INODE: usize = HEADER + 68;

    /// Looks up the socket that is bound to `local` and connected to `remote`.
    fn sock_diag(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Socket>> {
        let kernel = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        let request = request(local, remote);
        send(&kernel, &request, SendFlags::empty())?;
        let mut reply = [0; 512];
        // The kernel has replied before `send` returns.
        let (read, _) = recv(&kernel, &mut reply[..], RecvFlags::DONTWAIT)?;
        Ok(socket_in(&reply[..read], &request))
    }

    /// Encodes `nlmsghdr` and `inet_diag_req_v2`.
    fn request(local: SocketAddr, remote: SocketAddr) -> [u8; REQUEST_SIZE] {
        const TCP: u8 = 6;
        let (family, addresses) = match (local.ip().to_canonical(), remote.ip().to_canonical()) {
            (IpAddr::V4(local), IpAddr::V4(remote)) => (
                AddressFamily::INET,
                [local, remote].map(|ip| padded(&ip.octets())),
            ),
            (local, remote) => (
                AddressFamily::INET6,
                [local, remote].map(|ip| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                    IpAddr::V6(ip) => ip.octets(),
                }),
            ),
        };
        let family = u8::try_from(family.as_raw()).unwrap_or_default();
        let parts: [&[u8]; 12] = [
            &u32::try_from(REQUEST_SIZE)
                .unwrap_or_default()
                .to_ne_bytes(),
            &BY_FAMILY.to_ne_bytes(),
            &REQUEST.to_ne_bytes(),
            &[0; 8],
            &[family, TCP, 0, 0],
            // Every state.
            &u32::MAX.to_ne_bytes(),
            &local.port().to_be_bytes(),
            &remote.port().to_be_bytes(),
            &addresses[0],
            &addresses[1],
            // Any interface.
            &[0; 4],
            // `INET_DIAG_NOCOOKIE`.
            &[0xff; 8],
        ];
        let mut request = [0; REQUEST_SIZE];
        for (to, from) in request.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        request
    }

    fn padded(octets: &[u8]) -> [u8; 16] {
        let mut padded = [0; 16];
        padded[..octets.len()].copy_from_slice(octets);
        padded
    }

    /// Decodes a reply, which names the same ports.
    fn socket_in(reply: &[u8], request: &[u8; REQUEST_SIZE]) -> Option<Socket> {
        /// Offset of the ports in the request.
        const ASKED: usize = HEADER + 8;
        let kind = reply.get(4..6)?;
        let ports = reply.get(PORTS..PORTS + 4)?;
        let number = |at: usize| {
            let bytes = reply.get(at..at + 4)?;
            Some(u32::from_ne_bytes(bytes.try_into().ok()?))
        };
        let is_answer = kind == BY_FAMILY.to_ne_bytes() && ports == &request[ASKED..ASKED + 4];
        let (uid, inode) = (number(UID)?, number(INODE)?);
        is_answer.then_some(Socket {
            inode: inode.into(),
            uid,
        })
    }

    /// Looks up a socket in the tables of `/proc`. A client may use an IPv4 address on an IPv6 socket.
    fn proc_net_tcp(local: SocketAddr, remote: SocketAddr) -> io::Result<Option<Socket>> {
        for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
            let file = match std::fs::File::open(table) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                file => BufReader::with_capacity(64 << 10, file?),
            };
            for line in file.lines() {
                if let Some(socket) = socket_on(&line?, local, remote) {
                    return Ok(Some(socket));
                }
            }
        }
        Ok(None)
    }

    /// Decodes a line if it is about this socket.
    fn socket_on(line: &str, local: SocketAddr, remote: SocketAddr) -> Option<Socket> {
        let mut fields = line.split_ascii_whitespace();
        let is = |field: &str, wanted: SocketAddr| {
            address_in(field)
                .is_some_and(|(ip, port)| ip == wanted.ip().to_canonical() && port == wanted.port())
        };
        let (local_field, remote_field) = (fields.nth(1)?, fields.next()?);
        if !is(local_field, local) || !is(remote_field, remote) {
            return None;
        }
        let uid = fields.nth(4)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Socket { inode, uid })
    }

    /// Decodes an address such as `0100007F:1880`: words in the byte order of the machine.
    fn address_in(field: &str) -> Option<(IpAddr, u16)> {
        let (ip, port) = field.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let mut octets = [0; 16];
        for (octets, at) in octets.chunks_exact_mut(4).zip((0..ip.len()).step_by(8)) {
            let word = u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?;
            octets.copy_from_slice(&word.to_ne_bytes());
        }
        let ip = match ip.len() {
            8 => IpAddr::from([octets[0], octets[1], octets[2], octets[3]]),
            32 => IpAddr::from(octets).to_canonical(),
            _ => return None,
        };
        Some((ip, port))
    }

    #[cfg(test)]
    mod tests {
        use std::net::{TcpListener, TcpStream};

        use super::*;

        /// Both sources find the owner of a client over IPv4, IPv6 and IPv4-mapped addresses, and none after the client
        /// has closed its socket.
        #[tokio::test]
        async fn both_sources_find_the_owner_of_a_client() {
            let own = rustix::process::geteuid().as_raw();
            for (listen, connect) in [
                ("127.0.0.1:0", "127.0.0.1"),
                ("[::1]:0", "::1"),
                ("[::]:0", "127.0.0.1"),
                ("[::]:0", "::ffff:127.0.0.1"),
            ] {
                let listener = TcpListener::bind(listen).unwrap();
                let at = listener.local_addr().unwrap();
                let connect: IpAddr = connect.parse().unwrap();
                let client = TcpStream::connect((connect, at.port())).unwrap();
                let (server, peer) = listener.accept().unwrap();
                let local = server.local_addr().unwrap();
                let chosen = SocketOwners::beside(at);
                assert_eq!(chosen.of(peer, local).await, chosen.seen(own), "{listen}");
                for source in [chosen.source, Source::Proc] {
                    let owners = SocketOwners {
                        source,
                        reading: tokio::sync::Mutex::default(),
                        unmapped: None,
                    };
                    assert_eq!(
                        owners.of(peer, local).await,
                        Some(own),
                        "{listen} {source:?}"
                    );
                }
                drop(client);
                for source in [chosen.source, Source::Proc] {
                    let owners = SocketOwners {
                        source,
                        ..SocketOwners::beside(at)
                    };
                    assert_eq!(owners.of(peer, local).await, None, "{listen} {source:?}");
                }
            }
        }

        impl SocketOwners {
            fn seen(&self, uid: u32) -> Option<u32> {
                (self.unmapped != Some(uid)).then_some(uid)
            }
        }

        #[test]
        fn lines_of_proc_net_tcp_are_decoded() {
            let line = "   1: 0100007F:A001 0100007F:1880 01 00000000:00000000 00:00000000 00000000  1001        0 25698 1 0000000000000000 20 4 1 98 146";
            let peer = "127.0.0.1:40961".parse().unwrap();
            let local = "127.0.0.1:6272".parse().unwrap();
            let socket = Socket {
                inode: 25698,
                uid: 1001,
            };
            assert_eq!(socket_on(line, peer, local), Some(socket));
            assert_eq!(socket_on(line, local, peer), None);
            let mapped = "[::ffff:127.0.0.1]:40961".parse().unwrap();
            assert_eq!(socket_on(line, mapped, local), Some(socket));
            for broken in [
                "",
                "  sl  local_address rem_address   st",
                "1: 0100007F:A001",
            ] {
                assert_eq!(socket_on(broken, peer, local), None);
            }
            assert_eq!(
                address_in("0000000000000000FFFF00000100007F:1880"),
                Some(("127.0.0.1".parse().unwrap(), 6272))
            );
        }

        #[test]
        fn user_namespaces_are_recognised() {
            assert!(maps_every_user("         0          0 4294967295\n"));
            assert!(!maps_every_user("         0     100000      65536\n"));
            assert!(!maps_every_user(""));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Root, the own user and listed users are served; others get a text with the user ids and the key.
    #[test]
    fn only_the_own_user_root_and_listed_users_are_served() {
        let users = |others: &[u32]| LocalUsers {
            own: 1000,
            others: others.to_vec(),
        };
        for served in [0, 1000, 1001] {
            assert_eq!(users(&[1001]).check(Some(served)), Ok(()), "{served}");
        }
        let text = |others: &[u32], uid| users(others).check(uid).unwrap_err().to_string();
        assert_eq!(
            text(&[], Some(1001)),
            "this request comes from user id 1001; this server serves only user id 1000. Add the user to `allow_users`, or set `token`"
        );
        assert_eq!(
            text(&[1001, 33], Some(7)),
            "this request comes from user id 7; this server serves only the user ids 1000, 1001, 33. Add the user to `allow_users`, or set `token`"
        );
        assert_eq!(
            text(&[], None),
            "the user of this connection cannot be determined; this server serves only user id 1000. Set `token`, or `allow_remote` to serve everyone who can connect"
        );
    }
}
