//! iceoryx2: publish and subscribe between two processes of this host, through shared memory.
//!
//! ```text
//!   ipc    a publisher that waits, as iceoryx2 does, when the subscriber's queue is full
//!   spin   one that discards then, is told so, and tries again at once
//! ```
//!
//! Settings: slices of bytes, a queue of 1,024, nothing overwritten, one publisher and one
//! subscriber each way. A message is written into loaned memory once and read where it lies. Both
//! ends poll, as a subscriber without a listener does, so it only spins.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::prelude::*;
use iceoryx2::service::port_factory::publish_subscribe::PortFactory;
use peers::{Failure, Order, PATIENCE, Role, RoundTrips, Sequence, Window, say_ready};
use serde_json::Value;

/// How many messages may wait for who reads.
const QUEUE: usize = 1_024;

/// A queue that stays full for so long has nobody who reads it.
const LEFT_AFTER: Duration = Duration::from_millis(200);

type Way = PortFactory<ipc::Service, [u8], ()>;
type In = Subscriber<ipc::Service, [u8], ()>;
type Out = Publisher<ipc::Service, [u8], ()>;

fn main() -> ExitCode {
    peers::run(|order| {
        if !["ipc", "spin"].contains(&order.kind.as_str()) {
            return Err(Failure("the kinds are ipc and spin".to_owned()));
        }
        if !order.is_spinning && matches!(order.role, Role::Echo | Role::Ping) {
            return Err(Failure("iceoryx2 polls: a ping only spins".to_owned()));
        }
        set_log_level(LogLevel::Error);
        let node = NodeBuilder::new().create::<ipc::Service>().map_err(failure)?;
        match order.role {
            Role::Sink => sink(order, &reader(order, &node, "there")?),
            Role::Source => source(order, &writer(order, &node, "there")?),
            Role::Echo => echo(&reader(order, &node, "there")?, &writer(order, &node, "back")?),
            Role::Ping => {
                ping(order, &writer(order, &node, "there")?, &reader(order, &node, "back")?)
            }
        }
    })
}

fn failure(error: impl std::fmt::Debug) -> Failure {
    Failure(format!("{error:?}"))
}

/// The way there or back, which the end that comes first makes.
fn service(order: &Order, node: &Node<ipc::Service>, way: &str) -> Result<Way, Failure> {
    let name = format!("peers/{}/{way}", order.address.port());
    let name = ServiceName::new(&name).map_err(failure)?;
    node.service_builder(&name)
        .publish_subscribe::<[u8]>()
        .max_publishers(1)
        .max_subscribers(1)
        .subscriber_max_buffer_size(QUEUE)
        .enable_safe_overflow(false)
        .open_or_create()
        .map_err(failure)
}

fn reader(order: &Order, node: &Node<ipc::Service>, way: &str) -> Result<In, Failure> {
    service(order, node, way)?.subscriber_builder().create().map_err(failure)
}

fn writer(order: &Order, node: &Node<ipc::Service>, way: &str) -> Result<Out, Failure> {
    let when_full = match order.kind.as_str() {
        "spin" => BackpressureStrategy::DiscardData,
        _ => BackpressureStrategy::RetryUntilDelivered,
    };
    service(order, node, way)?
        .publisher_builder()
        .initial_max_slice_len(order.size)
        .backpressure_strategy(when_full)
        .create()
        .map_err(failure)
}

/// Writes a message where it is to lie; to how many it went.
fn send(out: &Out, message: &[u8]) -> Result<usize, Failure> {
    let sample = out.loan_slice_uninit(message.len()).map_err(failure)?;
    sample.write_from_slice(message).send().map_err(failure)
}

/// The next message, which is waited for no longer than [`PATIENCE`], given to `take`.
fn receive<T>(from: &In, take: impl Fn(&[u8]) -> T) -> Result<T, Failure> {
    let mut looks = 0_u32;
    let mut since = None;
    loop {
        if let Some(sample) = from.receive().map_err(failure)? {
            return Ok(take(sample.payload()));
        }
        looks = looks.wrapping_add(1);
        if looks.is_multiple_of(1 << 16)
            && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE
        {
            return Err(Failure("the other end said nothing".to_owned()));
        }
        std::hint::spin_loop();
    }
}

fn sink(order: &Order, from: &In) -> Result<Value, Failure> {
    let (mut window, mut sequence) = (Window::new(order.window), Sequence::default());
    say_ready()?;
    loop {
        let next = receive(from, |message| {
            (message.len(), message.first_chunk::<8>().copied().unwrap_or_default())
        });
        let (len, head) = next?;
        if !window.count(len, 1, sequence.take(&head)) {
            return window.report("sink");
        }
    }
}

fn source(order: &Order, out: &Out) -> Result<Value, Failure> {
    let (mut window, mut sequence) = (Window::new(order.window), Sequence::default());
    let mut message = vec![7; order.size];
    while !window.is_past_grace() {
        sequence.put(&mut message);
        let full = Instant::now();
        while send(out, &message)? == 0 {
            if full.elapsed() > LEFT_AFTER {
                // The sink has left behind its window.
                return window.report("source");
            }
            std::hint::spin_loop();
        }
        window.count(order.size, 1, 0);
    }
    window.end();
    window.report("source")
}

fn echo(from: &In, out: &Out) -> Result<Value, Failure> {
    say_ready()?;
    // Until it is ended from outside: the end of a ping cannot be seen from here.
    loop {
        if let Some(sample) = from.receive().map_err(failure)? {
            send(out, sample.payload())?;
        } else {
            std::hint::spin_loop();
        }
    }
}

fn ping(order: &Order, out: &Out, from: &In) -> Result<Value, Failure> {
    let message = vec![7; order.size];
    let mut round_trips = RoundTrips::new(order.window);
    loop {
        let sent = Instant::now();
        if send(out, &message)? == 0 {
            return Err(Failure("nobody reads".to_owned()));
        }
        receive(from, |_| ())?;
        if !round_trips.book(sent) {
            return Ok(round_trips.report(true));
        }
    }
}
