//! What AF_XDP would give: the control `udp` with its datagrams through rings that pass the
//! kernel's network stack by.
//!
//! ```text
//!   sink, source, echo, ping  -- frames: Ethernet, IPv4, UDP, payload --  socket.rs
//!                                                                            | rings, memory
//!   interface --- program.rs: UDP to our port? -- yes --> socket's ring -----+
//!                                              '- no ---> the kernel, as ever
//! ```
//!
//! Who is where is asked of the kernel (`frame.rs`), and only IPv4 over Ethernet is
//! spoken. Sizes and counting are those of `plain`. What the kernel refuses is a [`Refused`] with
//! its step and error.
//!
//! Invariant: a frame is in one place at a time: in a ring, free, or in our hands.
//!
//! Source: Documentation/networking/af_xdp.rst of Linux.

mod frame;
mod program;
mod refused;
mod socket;

use frame::{HEAD_LEN, Way};
use peers::{Failure, Order, PATIENCE, Role, RoundTrips, Sequence, Window, say_ready};
use program::Program;
use refused::Refused;
use serde_json::{Value, json};
use socket::{Frame, Ready, Xsk};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Datagrams between two calls: as many as one call sends in copy mode.
const BATCH: usize = 32;
/// After so much silence an echo is done: the end of a ping cannot be seen.
const SILENCE: Duration = Duration::from_secs(1);

/// The longest payload of a frame at MTU 1500.
const PAYLOAD_LEN_MAX: usize = 1_472;

fn main() -> ExitCode {
    peers::run(|order| match (order.kind.as_str(), order.role) {
        _ if order.size > PAYLOAD_LEN_MAX => {
            Err(Failure(format!("{} bytes are no frame: at most {PAYLOAD_LEN_MAX}", order.size)))
        }
        ("udp", Role::Sink) => sink(order),
        ("udp", Role::Source) => source(order),
        ("udp", Role::Echo) => echo(order),
        ("udp", Role::Ping) => ping(order),
        _ => Err(Failure("the kind is udp".to_owned())),
    })
}

/// A socket, and the program that fills it while both live.
struct End {
    xsk: Xsk,
    program: Program,
}

impl End {
    /// Opens the socket and steers what comes for the port into it.
    fn open(interface: u32, port: u16) -> Result<Self, Refused> {
        let xsk = Xsk::open(interface)?;
        let program = Program::attach(interface, port, &xsk)?;
        Ok(Self { xsk, program })
    }

    /// How the kernel does it, beside the figures.
    fn describe(&self, mut report: Value) -> Value {
        let native = self.program.is_native();
        report["xdp"] = json!({ "native": native, "zero_copy": self.xsk.is_zero_copy() });
        report
    }
}

fn source(order: &Order) -> Result<Value, Failure> {
    let way = Way::to(order.address)?;
    let mut xsk = Xsk::open(way.interface)?;
    xsk.fill_all(&way.frame(order.size));
    let (mut window, mut sequence) = (Window::new(order.window), Sequence::default());
    while !window.is_past_grace() {
        let mut count = 0;
        while count < BATCH
            && let Some(frame) = xsk.take_free(HEAD_LEN + order.size)
        {
            sequence.put(&mut xsk.bytes(&frame)[HEAD_LEN..]);
            xsk.send(frame);
            count += 1;
        }
        if count == 0 {
            xsk.wait(Ready::ToSend, PATIENCE, order.is_spinning)?;
        }
        xsk.kick()?;
        window.count(count * order.size, count as u64, 0);
    }
    window.end();
    window.report("source")
}

fn sink(order: &Order) -> Result<Value, Failure> {
    let mut end = End::open(frame::interface_of(order.address)?, order.address.port())?;
    say_ready()?;
    let (mut window, mut sequence) = (Window::new(order.window), Sequence::default());
    loop {
        let (mut count, mut bytes, mut lost) = (0, 0, 0);
        while count < BATCH as u64
            && let Some(frame) = end.xsk.receive()
        {
            let payload = end.xsk.bytes(&frame).get(HEAD_LEN..).unwrap_or_default();
            lost += sequence.take(payload);
            bytes += payload.len();
            count += 1;
            end.xsk.give_back(frame);
        }
        if count == 0 {
            if !end.xsk.wait(Ready::ToReceive, PATIENCE, order.is_spinning)? {
                return Err(Failure("nothing came any more".to_owned()));
            }
        } else if !window.count(bytes, count, lost) {
            return Ok(end.describe(window.report("sink")?));
        }
    }
}

/// The next frame that comes, or none within `patience`.
fn await_frame(
    xsk: &mut Xsk,
    patience: Duration,
    is_spinning: bool,
) -> Result<Option<Frame>, Failure> {
    let started = Instant::now();
    loop {
        if let Some(frame) = xsk.receive() {
            return Ok(Some(frame));
        }
        let is_over = !xsk.wait(Ready::ToReceive, patience, is_spinning)?;
        if is_over || started.elapsed() > patience {
            return Ok(None);
        }
    }
}

fn echo(order: &Order) -> Result<Value, Failure> {
    let End { mut xsk, program } =
        End::open(frame::interface_of(order.address)?, order.address.port())?;
    say_ready()?;
    let mut patience = PATIENCE;
    while let Some(frame) = await_frame(&mut xsk, patience, order.is_spinning)? {
        patience = SILENCE;
        frame::turn_around(xsk.bytes(&frame));
        xsk.send(frame);
        xsk.kick()?;
        xsk.refill();
    }
    drop(program);
    Ok(json!({ "role": "echo" }))
}

fn ping(order: &Order) -> Result<Value, Failure> {
    let way = Way::to(order.address)?;
    let mut end = End::open(way.interface, order.address.port())?;
    let question = way.frame(order.size);
    end.xsk.fill_all(&question);
    let mut round_trips = RoundTrips::new(order.window);
    loop {
        let sent = Instant::now();
        let free = end.xsk.take_free(question.len());
        end.xsk.send(free.ok_or_else(|| Failure("no frame came back".to_owned()))?);
        end.xsk.kick()?;
        let Some(answer) = await_frame(&mut end.xsk, PATIENCE, order.is_spinning)? else {
            return Err(Failure("no answer came".to_owned()));
        };
        let has_more = round_trips.book(sent);
        end.xsk.give_back(answer);
        if !has_more {
            return Ok(end.describe(round_trips.report(order.is_spinning)));
        }
    }
}
