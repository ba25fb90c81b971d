//! Messages in unreliable datagrams.

use std::time::Instant;

use bytes::Bytes;
use peers::{Failure, Order, PATIENCE, RoundTrips, Window, unnumbered};
use quinn::Connection;
use serde_json::{Value, json};

use crate::ends::failure;

/// Counts what comes.
pub fn sink(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let mut window = Window::new(order.window);
        loop {
            let datagram = connection.read_datagram().await.map_err(failure)?;
            if !window.count(datagram.len(), 1, 0) {
                return window.report("sink").map(unnumbered);
            }
        }
    }
}

/// Sends as fast as it can.
pub fn source(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let message = Bytes::from(vec![7; order.size]);
        let mut window = Window::new(order.window);
        while !window.is_past_grace() {
            match connection.send_datagram_wait(message.clone()).await {
                Ok(()) => window.count(order.size, 1, 0),
                Err(quinn::SendDatagramError::ConnectionLost(_)) => break,
                Err(error) => return Err(failure(error)),
            };
        }
        window.end();
        window.report("source")
    }
}

/// Sends back what comes.
pub fn echo(connection: &Connection) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        while let Ok(message) = connection.read_datagram().await {
            connection.send_datagram(message).map_err(failure)?;
        }
        Ok(json!({ "role": "echo" }))
    }
}

/// Sends a message, waits until it is back, and again.
pub fn ping(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let message = Bytes::from(vec![7; order.size]);
        let mut round_trips = RoundTrips::new(order.window);
        loop {
            let sent = Instant::now();
            connection.send_datagram(message.clone()).map_err(failure)?;
            let back = tokio::time::timeout(PATIENCE, connection.read_datagram()).await;
            back.map_err(failure)?.map_err(failure)?;
            if !round_trips.book(sent) {
                return Ok(round_trips.report(false));
            }
        }
    }
}
