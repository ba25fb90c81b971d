//! quinn: QUIC with TLS 1.3, over one stream or in datagrams.
//!
//! ```text
//!   stream     one stream, messages of SIZE written without a copy, chunks read as they come
//!   stream-bbr the same with quinn's BBR in place of CUBIC
//!   datagram   unreliable datagrams of SIZE
//!   setup      a connection and a stream for each message there and back, by a whole handshake
//!   resume     the same, by a handshake that resumes the session before it
//! ```
//!
//! Settings, none of which ties its hands: AES-128-GCM by `ring`, full datagrams from the first on
//! (1472 bytes), windows of 32 MiB, large socket buffers, acknowledgements as rare as the peer may
//! ask for, a runtime on one thread. The certificate goes through a file in `$PEERS_DIR`.

// The rules of the repository refuse `async fn`; so functions return futures, as the library's do.
#![allow(clippy::manual_async_fn)]

use std::process::ExitCode;
use std::time::Duration;

use peers::{Failure, Order, Role};
use quinn::VarInt;
use serde_json::Value;

mod datagram;
mod ends;
mod setup;
mod stream;

fn main() -> ExitCode {
    peers::run(|order| {
        if order.is_spinning {
            return Err(Failure("quinn cannot be told to spin".to_owned()));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        match (order.kind.as_str(), order.role) {
            ("stream" | "stream-bbr" | "datagram", _) => runtime.block_on(carry_out(order)),
            ("setup" | "resume", Role::Echo) => runtime.block_on(setup::echo(order)),
            ("setup" | "resume", Role::Ping) => runtime.block_on(setup::ping(order)),
            _ => {
                let kinds = "stream, stream-bbr, datagram, and of echo and ping setup and resume";
                Err(Failure(format!("the kinds are {kinds}")))
            }
        }
    })
}

fn carry_out(order: &Order) -> impl Future<Output = Result<Value, Failure>> {
    async move {
        let (endpoint, connection) = match order.role {
            Role::Sink | Role::Echo => ends::listen(order).await?,
            Role::Source | Role::Ping => ends::call(order).await?,
        };
        let is_stream = order.kind != "datagram";
        let result = match (order.role, is_stream) {
            (Role::Sink, true) => stream::sink(order, &connection).await,
            (Role::Sink, false) => datagram::sink(order, &connection).await,
            (Role::Source, true) => stream::source(order, &connection).await,
            (Role::Source, false) => datagram::source(order, &connection).await,
            (Role::Echo, true) => stream::echo(order, &connection).await,
            (Role::Echo, false) => datagram::echo(&connection).await,
            (Role::Ping, true) => stream::ping(order, &connection).await,
            (Role::Ping, false) => datagram::ping(order, &connection).await,
        };
        connection.close(VarInt::from_u32(0), b"");
        // The other end may be gone already, and then nobody acknowledges the end.
        let _ = tokio::time::timeout(Duration::from_millis(50), endpoint.wait_idle()).await;
        result
    }
}
