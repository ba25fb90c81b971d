//! Zenoh: publish and subscribe between two peers, over TCP or UDP.
//!
//! ```text
//!   tcp   a publisher that waits when the network is full
//!   udp   a publisher that drops then
//! ```
//!
//! Settings: two sessions in peer mode that know each other's address, no discovery; batching as it
//! comes (a ping goes `express`, without it); what is sent shares one body; an echo and a ping
//! answer in the callback, with no thread between.

use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use peers::{Failure, Order, PATIENCE, Role, RoundTrips, Window, say_ready};
use serde_json::Value;
use zenoh::bytes::ZBytes;
use zenoh::pubsub::Publisher;
use zenoh::qos::CongestionControl;
use zenoh::{Session, Wait};

const BULK: &str = "peers/bulk";
const THERE: &str = "peers/there";
const BACK: &str = "peers/back";

fn main() -> ExitCode {
    peers::run(|order| {
        if order.is_spinning {
            return Err(Failure("Zenoh cannot be told to spin".to_owned()));
        }
        let session = open(order)?;
        match order.role {
            Role::Sink => sink(order, &session),
            Role::Source => source(order, &session),
            Role::Echo => echo(order, &session),
            Role::Ping => ping(order, &session),
        }
    })
}

fn failure(error: impl std::fmt::Display) -> Failure {
    Failure(error.to_string())
}

fn open(order: &Order) -> Result<Session, Failure> {
    if !["tcp", "udp"].contains(&order.kind.as_str()) {
        return Err(Failure("the kinds are tcp and udp".to_owned()));
    }
    let endpoint = format!("[\"{}/{}\"]", order.kind, order.address);
    let (listen, connect) = match order.role {
        Role::Sink | Role::Echo => (endpoint.as_str(), "[]"),
        Role::Source | Role::Ping => ("[]", endpoint.as_str()),
    };
    let mut config = zenoh::Config::default();
    for (key, value) in [
        ("mode", "\"peer\""),
        ("scouting/multicast/enabled", "false"),
        ("scouting/gossip/enabled", "false"),
        ("listen/endpoints", listen),
        ("connect/endpoints", connect),
    ] {
        config.insert_json5(key, value).map_err(failure)?;
    }
    zenoh::open(config).wait().map_err(failure)
}

fn publisher(
    order: &Order,
    session: &Session,
    key: &'static str,
    is_express: bool,
) -> Result<Publisher<'static>, Failure> {
    let control =
        if order.kind == "tcp" { CongestionControl::Block } else { CongestionControl::Drop };
    let publisher = session.declare_publisher(key).congestion_control(control).express(is_express);
    publisher.wait().map_err(failure)
}

/// Waits until the other end has subscribed to what `publisher` says.
fn wait_for_reader(publisher: &Publisher<'_>) -> Result<(), Failure> {
    let started = Instant::now();
    while !publisher.matching_status().wait().map_err(failure)?.matching() {
        if started.elapsed() > PATIENCE {
            return Err(Failure("nobody subscribed".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}

fn sink(order: &Order, session: &Session) -> Result<Value, Failure> {
    let (over, result) = channel();
    let window = Mutex::new(Window::new(order.window));
    let count = move |len| {
        let mut window = window.lock().unwrap_or_else(PoisonError::into_inner);
        if !window.count(len, 1, 0) {
            // Messages share one body and have no number.
            let report = window.report("sink").map(peers::unnumbered);
            let _ = over.send(report);
        }
    };
    let subscriber = session.declare_subscriber(BULK);
    let subscriber = subscriber.callback(move |sample| count(sample.payload().len()));
    let _subscriber = subscriber.wait().map_err(failure)?;
    say_ready()?;
    match result.recv_timeout(order.window + PATIENCE) {
        Ok(report) => report,
        Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
            Err(Failure("too little came to fill the window".to_owned()))
        }
    }
}

fn source(order: &Order, session: &Session) -> Result<Value, Failure> {
    let publisher = publisher(order, session, BULK, false)?;
    wait_for_reader(&publisher)?;
    let message = ZBytes::from(vec![7; order.size]);
    let mut window = Window::new(order.window);
    while !window.is_past_grace() {
        publisher.put(message.clone()).wait().map_err(failure)?;
        window.count(order.size, 1, 0);
    }
    window.end();
    window.report("source")
}

fn echo(order: &Order, session: &Session) -> Result<Value, Failure> {
    let publisher = publisher(order, session, BACK, true)?;
    let subscriber = session.declare_subscriber(THERE).callback(move |sample| {
        // A message that cannot be sent back is missed by the ping, which says so.
        let _ = publisher.put(sample.payload().clone()).wait();
    });
    let _subscriber = subscriber.wait().map_err(failure)?;
    say_ready()?;
    // Until it is ended from outside: the end of a ping cannot be seen from here.
    loop {
        std::thread::park();
    }
}

/// A ping under way: what the callback needs to book one answer and send the next message.
struct Pinging {
    publisher: Publisher<'static>,
    message: ZBytes,
    sent: Instant,
    round_trips: RoundTrips,
    over: Sender<Result<Value, Failure>>,
}

impl Pinging {
    fn begin(&mut self, order: &Order) {
        self.round_trips = RoundTrips::new(order.window);
        self.send();
    }

    fn send(&mut self) {
        self.sent = Instant::now();
        if let Err(error) = self.publisher.put(self.message.clone()).wait() {
            let _ = self.over.send(Err(failure(error)));
        }
    }

    fn handle_answer(&mut self) {
        if self.round_trips.book(self.sent) {
            self.send();
        } else {
            let _ = self.over.send(Ok(self.round_trips.report(false)));
        }
    }
}

fn ping(order: &Order, session: &Session) -> Result<Value, Failure> {
    let (over, result) = channel();
    let publisher = publisher(order, session, THERE, true)?;
    wait_for_reader(&publisher)?;
    let pinging = Arc::new(Mutex::new(Pinging {
        publisher,
        message: ZBytes::from(vec![7; order.size]),
        sent: Instant::now(),
        round_trips: RoundTrips::new(order.window),
        over,
    }));
    let answered = Arc::clone(&pinging);
    let subscriber = session.declare_subscriber(BACK).callback(move |_| {
        answered.lock().unwrap_or_else(PoisonError::into_inner).handle_answer();
    });
    let _subscriber = subscriber.wait().map_err(failure)?;
    // The other end hears of the subscription within moments, but does not say so.
    std::thread::sleep(Duration::from_millis(200));
    pinging.lock().unwrap_or_else(PoisonError::into_inner).begin(order);
    result
        .recv_timeout(order.window * 2 + PATIENCE)
        .map_err(|_| Failure("an answer did not come".to_owned()))?
}
