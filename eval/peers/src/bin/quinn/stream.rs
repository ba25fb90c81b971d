//! Messages over one stream.

use std::time::Instant;

use bytes::Bytes;
use peers::{Failure, Order, RoundTrips, Window};
use quinn::{Connection, RecvStream, SendStream};
use serde_json::{Value, json};

use crate::ends::{failure, read_whole};

/// Counts what comes.
pub fn sink(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let mut stream = connection.accept_uni().await.map_err(failure)?;
        let mut window = Window::new(order.window);
        let mut chunks: [Bytes; 64] = std::array::from_fn(|_| Bytes::new());
        loop {
            let Some(count) = stream.read_chunks(&mut chunks).await.map_err(failure)? else {
                return Err(Failure("the source left before the window was over".to_owned()));
            };
            let len = chunks[..count].iter().map(Bytes::len).sum();
            if !window.count(len, 1, 0) {
                return window.report("sink");
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
        let mut stream = connection.open_uni().await.map_err(failure)?;
        let message = Bytes::from(vec![7; order.size]);
        let mut window = Window::new(order.window);
        while !window.is_past_grace() {
            // The sink leaves when its window is over.
            if stream.write_chunk(message.clone()).await.is_err() {
                break;
            }
            window.count(order.size, 1, 0);
        }
        window.end();
        window.report("source")
    }
}

/// Sends back what comes.
pub fn echo(
    order: &Order,
    connection: &Connection,
) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let (mut there, mut back) = connection.accept_bi().await.map_err(failure)?;
        let mut message = vec![0; order.size];
        while read_whole(&mut back, &mut message).await.unwrap_or(false) {
            there.write_all(&message).await.map_err(failure)?;
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
        let (mut there, mut back): (SendStream, RecvStream) =
            connection.open_bi().await.map_err(failure)?;
        let mut message = vec![7; order.size];
        let mut round_trips = RoundTrips::new(order.window);
        loop {
            let sent = Instant::now();
            there.write_all(&message).await.map_err(failure)?;
            if !read_whole(&mut back, &mut message).await? {
                return Err(Failure("the other end left".to_owned()));
            }
            if !round_trips.book(sent) {
                return Ok(round_trips.report(false));
            }
        }
    }
}
