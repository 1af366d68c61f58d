//! A proxy that does to connections what networks do.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::error::RowError;

/// Fault applied to the bytes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// They come one at a time.
    Split,
    /// They come together, a moment later.
    Merged,
    /// After so many the connection is reset.
    Reset(usize),
    /// After so many there are no more, and the connection ends in order.
    HalfClose(usize),
    /// After so many nothing more comes, and nothing ends.
    Stall(usize),
}

/// Time during which bytes are merged.
const GATHER: Duration = Duration::from_millis(20);

/// Bytes read at a time.
const PIECE: usize = 16 * 1024;

/// A proxy in front of one server; it ends on drop.
#[derive(Debug)]
pub(crate) struct Proxy {
    address: String,
    fault: watch::Sender<Fault>,
    /// Everything that the proxy does ends with this.
    _working: JoinSet<()>,
}

impl Proxy {
    /// Listens in front of `host:port`.
    pub(crate) async fn start(server: &str) -> Result<Self, RowError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?.to_string();
        let (fault, faults) = watch::channel(Fault::None);
        let mut working = JoinSet::new();
        working.spawn(accept(listener, server.to_owned(), faults));
        Ok(Self {
            address,
            fault,
            _working: working,
        })
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Sets the fault, also for open connections.
    pub(crate) fn set(&self, fault: Fault) {
        self.fault.send_replace(fault);
    }
}

async fn accept(listener: TcpListener, server: String, faults: watch::Receiver<Fault>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        let (server, faults) = (server.clone(), faults.clone());
        connections.spawn(async move {
            if let Ok(server) = TcpStream::connect(&server).await {
                relay(client, server, faults).await;
            }
        });
    }
}

async fn relay(client: TcpStream, server: TcpStream, faults: watch::Receiver<Fault>) {
    // Whether it was set or not, bytes come through.
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let there = async {
        // The end of one direction ends both.
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
    };
    let back = pass(from_server, to_client, faults);
    tokio::select! {
        () = there => {}
        () = back => {}
    }
}

/// Passes on what the server says, until a fault ends it.
async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, faults: watch::Receiver<Fault>) {
    let mut buffer = vec![0; PIECE];
    let (mut before, mut since) = (Fault::None, 0);
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let fault = *faults.borrow();
        if fault != before {
            (before, since) = (fault, 0);
        }
        let bytes = buffer.get(..count).unwrap_or_default();
        let room = match fault {
            Fault::None | Fault::Split | Fault::Merged => count,
            Fault::Reset(most) | Fault::HalfClose(most) | Fault::Stall(most) => {
                most.saturating_sub(since).min(count)
            }
        };
        since += count;
        let (through, _) = bytes.split_at(room);
        if deliver(&mut to, through, fault).await.is_err() {
            return;
        }
        if room < count {
            return end(to, fault).await;
        }
    }
}

async fn deliver(to: &mut OwnedWriteHalf, bytes: &[u8], fault: Fault) -> std::io::Result<()> {
    match fault {
        Fault::Split => {
            for byte in bytes {
                to.write_all(std::slice::from_ref(byte)).await?;
                tokio::task::yield_now().await;
            }
            Ok(())
        }
        Fault::Merged => {
            tokio::time::sleep(GATHER).await;
            to.write_all(bytes).await
        }
        Fault::None | Fault::Reset(_) | Fault::HalfClose(_) | Fault::Stall(_) => {
            to.write_all(bytes).await
        }
    }
}

async fn end(mut to: OwnedWriteHalf, fault: Fault) {
    match fault {
        Fault::Stall(_) => std::future::pending().await,
        // What cannot be set is a connection that ends in order.
        Fault::Reset(_) => drop(to.as_ref().set_zero_linger()),
        Fault::None | Fault::Split | Fault::Merged | Fault::HalfClose(_) => {
            let _ = to.shutdown().await;
        }
    }
}
