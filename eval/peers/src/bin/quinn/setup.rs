//! A connection and a stream for each message there and back.

use std::time::{Duration, Instant};

use peers::{Failure, LAST, Order, PATIENCE, RoundTrips};
use quinn::VarInt;
use serde_json::{Value, json};

use crate::ends::{accept, caller, connect, failure, listener, read_whole};

/// So often who drives a connection is let have its turn before a process ends.
const TURNS_TO_END: usize = 8;

/// Answers a message on each connection; the last leaves time for its answer to arrive.
pub fn echo(order: &Order) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let endpoint = listener(order)?;
        let mut message = vec![0; order.size];
        while message[0] != LAST {
            let connection = accept(&endpoint).await?;
            let (mut there, mut back) = connection.accept_bi().await.map_err(failure)?;
            if read_whole(&mut back, &mut message).await? {
                there.write_all(&message).await.map_err(failure)?;
            }
            // The other end closes once it has the answer.
            let _ = tokio::time::timeout(PATIENCE, connection.closed()).await;
        }
        Ok(json!({ "role": "echo" }))
    }
}

/// A message on a connection of its own, again and again.
pub fn ping(order: &Order) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let endpoint = caller(order, order.kind == "resume")?;
        let mut message = vec![7; order.size];
        let mut round_trips = RoundTrips::new(order.window);
        loop {
            let sent = Instant::now();
            let connection = connect(&endpoint, order).await?;
            let (mut there, mut back) = connection.open_bi().await.map_err(failure)?;
            there.write_all(&message).await.map_err(failure)?;
            if !read_whole(&mut back, &mut message).await? {
                return Err(Failure("the other end left".to_owned()));
            }
            let is_more = round_trips.book(sent);
            connection.close(VarInt::from_u32(0), b"");
            if order.window.is_zero() {
                // What drives the connection sends its end, and then this process ends.
                for _ in 0..TURNS_TO_END {
                    tokio::task::yield_now().await;
                }
                return Ok(round_trips.report(false));
            }
            if message[0] == LAST {
                // That it is over goes out before this process does.
                let _ = tokio::time::timeout(Duration::from_millis(50), endpoint.wait_idle()).await;
                return Ok(round_trips.report(false));
            }
            if !is_more {
                message[0] = LAST;
            }
        }
    }
}
