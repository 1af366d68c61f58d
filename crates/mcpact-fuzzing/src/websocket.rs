use std::time::Duration;

use mcpact_transport::link::Link;
use mcpact_transport::websocket::accept;
use mcpact_wire::frame::ndjson::{DEFAULT_LINE_LIMIT, Line};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::time::timeout;

/// Bytes that the connection holds per direction.
const SPACE: usize = 1024;

/// More than the output that waits for a client that does not read: queued pongs, what the connection holds, and the
/// pongs to what it holds.
const MAX_OUTPUT: usize = 64 * 1024 + 2 * SPACE;

/// Time after which a client that accepts or sends nothing is blocked.
const BLOCKED: Duration = Duration::from_secs(1);

/// Time in which a connection must end once one side has ended.
const END: Duration = Duration::from_secs(60);

/// Bytes of a client after the upgrade: the output that waits for it is bounded, messages are no longer than a line
/// may be, and the connection ends when either side does.
///
/// The first byte chooses how the client and the server behave, the second how often the rest is sent.
///
/// # Panics
/// An invariant is broken.
pub fn websocket(data: &[u8]) {
    let Some((&[behaviour, times], stream)) = data.split_first_chunk::<2>() else {
        return;
    };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    // No time passes but that of timers.
    let runtime = builder.enable_time().start_paused(true).build();
    let Ok(runtime) = runtime else {
        panic!("no runtime");
    };
    let repeated = stream.repeat(usize::from(times) * 8 + 1);
    runtime.block_on(run(behaviour, &repeated));
}

/// Behaviour of the client.
#[derive(Clone, Copy)]
enum Reading {
    /// It reads while it writes.
    Always,
    /// It reads after it has written as much as is accepted.
    Late,
    Never,
}

/// Behaviour of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Serving {
    /// It reads and sends nothing.
    Silent,
    Echo,
    /// It closes the connection at once.
    Close,
}

async fn run(behaviour: u8, stream: &[u8]) {
    let reading = [Reading::Always, Reading::Late, Reading::Never][usize::from(behaviour % 3)];
    let kinds = [Serving::Silent, Serving::Echo, Serving::Close];
    let serving = kinds[usize::from(behaviour / 3 % 3)];
    let (client, server) = duplex(SPACE);
    let (link, pumping) = accept(server).await;
    let pumping = async {
        let ended = timeout(END, pumping).await;
        assert!(ended.is_ok(), "the connection does not end");
    };
    tokio::join!(
        pumping,
        serve(link, serving),
        send(client, stream, reading, serving)
    );
}

async fn serve(mut link: Link, serving: Serving) {
    if serving == Serving::Close {
        return;
    }
    while link.source.fill().await.unwrap_or_default() {
        while let Some(line) = link.source.next_line() {
            let (Line::Json(bytes) | Line::Noise(bytes)) = line else {
                panic!("a message is too long for a line");
            };
            assert!(bytes.len() <= DEFAULT_LINE_LIMIT);
            if serving == Serving::Echo
                && let Ok(text) = std::str::from_utf8(bytes)
            {
                link.sink.push(text);
            }
        }
        if link.sink.flush().await.is_err() {
            return;
        }
    }
}

/// Sends the stream, then closes the connection.
async fn send(client: DuplexStream, stream: &[u8], reading: Reading, serving: Serving) {
    let (mut input, mut output) = tokio::io::split(client);
    let mut received = Vec::new();
    match reading {
        Reading::Always => {
            let reading = input.read_to_end(&mut received);
            let writing = async {
                // The server may have closed the connection.
                let _ = output.write_all(stream).await;
                let _ = output.shutdown().await;
            };
            let (read, ()) = tokio::join!(reading, writing);
            assert!(read.is_ok());
        }
        Reading::Late => {
            let _ = timeout(BLOCKED, output.write_all(stream)).await;
            let _ = timeout(BLOCKED, input.read_to_end(&mut received)).await;
            if serving != Serving::Echo {
                assert!(received.len() <= MAX_OUTPUT, "{}", received.len());
            }
        }
        Reading::Never => {
            let _ = timeout(BLOCKED, output.write_all(stream)).await;
            let _ = timeout(END / 2, output.shutdown()).await;
            tokio::time::sleep(END / 2).await;
        }
    }
}
