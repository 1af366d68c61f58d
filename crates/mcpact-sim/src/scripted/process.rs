//! Child processes and blocking HTTP, for tests of programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::ops::{Deref, DerefMut};
use std::process::{Child, Command, Stdio};

use super::REAL_LIMIT;

/// Child process; dropping it kills the process.
#[derive(Debug)]
pub struct TestProcess {
    child: Child,
}

impl TestProcess {
    /// Starts a process.
    pub fn spawn(command: &mut Command) -> Self {
        let child = command.spawn().unwrap();
        Self { child }
    }

    /// Starts a process that prints its URL as the first line; returns both.
    pub fn listening(command: &mut Command) -> (Self, String) {
        let mut process = Self::spawn(command.stdout(Stdio::piped()));
        let url = process.first_line();
        (process, url)
    }

    /// Reads the first line of the output, which must be a pipe.
    pub fn first_line(&mut self) -> String {
        let mut line = String::new();
        let output = self.stdout.as_mut().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        line.trim().to_owned()
    }

    /// Sends a signal, for example `-TERM`.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }
}

impl Deref for TestProcess {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.child
    }
}

impl DerefMut for TestProcess {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.child
    }
}

impl Drop for TestProcess {
    fn drop(&mut self) {
        // Both fail only if it has exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process.
pub fn signal(process: u32, name: &str) {
    let id = process.to_string();
    let status = Command::new("kill").args([name, &id]).status().unwrap();
    assert!(status.success());
}

/// Sends a raw HTTP request to an origin or address without reading the response.
///
/// Each header ends with CR and LF.
pub fn send(verb: &str, origin: &str, path: &str, headers: &str, body: &str) -> TcpStream {
    let host = origin.strip_prefix("http://").unwrap_or(origin);
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(REAL_LIMIT)).unwrap();
    let length = body.len();
    write!(
        stream,
        "{verb} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

/// Sends a raw HTTP request like [`send`]; returns the raw response.
#[must_use]
pub fn exchange(verb: &str, origin: &str, path: &str, headers: &str, body: &str) -> String {
    let mut response = String::new();
    let mut stream = send(verb, origin, path, headers, body);
    stream.read_to_string(&mut response).unwrap();
    response
}
