//! A client and a server driven by a script.

mod client;
mod ledger;
mod script;
mod server;
mod terms;

use std::collections::VecDeque;
use std::time::Duration;

use mcpact_engine::time::Moment;

use client::WatchedClient;
use script::Order;
use server::WatchedServer;
use terms::Choices;

/// Maximum number of orders, so that no input takes long.
const MOST_ORDERS: usize = 200;

/// Two machines and the wire between them.
struct Stage {
    server: WatchedServer,
    client: WatchedClient,
    to_server: VecDeque<String>,
    to_client: VecDeque<String>,
    now: Moment,
}

/// Runs a client and a server with a script. Neither panics; they answer only requests, each at most once; the phase
/// never goes back; and every written message can be parsed.
///
/// The first line contains the choices of both owners, each further line is one order; the letters are listed in
/// `engine/script.rs`.
///
/// # Panics
/// An invariant is broken.
pub fn engine(data: &[u8]) {
    let mut lines = data.split(|&byte| byte == b'\n');
    let choices = Choices(lines.next().unwrap_or_default());
    let mut stage = Stage {
        server: WatchedServer::new(choices.server()),
        client: WatchedClient::new(choices.client()),
        to_server: VecDeque::new(),
        to_client: VecDeque::new(),
        now: Moment::ZERO,
    };
    for order in lines.filter_map(script::parse).take(MOST_ORDERS) {
        stage.follow(&order);
    }
}

impl Stage {
    fn follow(&mut self, order: &Order<'_>) {
        match order {
            Order::Wait(time) => self.now = self.now.after(Duration::from_millis(*time)),
            Order::DeliverToServer => {
                if let Some(text) = self.to_server.pop_front() {
                    self.server.bytes(text.as_bytes(), self.now);
                }
            }
            Order::DeliverToClient => {
                if let Some(text) = self.to_client.pop_front() {
                    self.client.bytes(text.as_bytes(), None, self.now);
                }
            }
            Order::Server(order) => self.server.follow(order, self.now),
            Order::Client(order) => self.client.follow(order, self.now),
            Order::Tick => {
                self.server.tick(self.now);
                self.client.tick(self.now);
            }
        }
        self.to_client.extend(self.server.take_written());
        self.to_server.extend(self.client.take_written());
    }
}
