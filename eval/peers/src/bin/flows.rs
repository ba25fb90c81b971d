//! Many flows at one pace: SIZE connections of kernel TCP, over which messages of 1000 bytes go in
//! turns, 5,000 a second in all, as `dacapo bench scale --send` does with sessions.
//!
//! Invariant: a message begins with the time at which it was due, on `CLOCK_MONOTONIC`, so that one
//! that a source sends late counts as late.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::time::{ClockId, clock_gettime};
use peers::{Failure, Order, PATIENCE, Role, Window, percentile, say_ready};
use serde_json::Value;

const MESSAGE_BYTES: usize = 1_000;
const EVERY: Duration = Duration::from_micros(200);

fn main() -> ExitCode {
    peers::run(|order| match (order.kind.as_str(), order.role) {
        ("tcp", Role::Sink) => sink(order),
        ("tcp", Role::Source) => source(order),
        _ => Err(Failure("the kind is tcp, and the roles are sink and source".to_owned())),
    })
}

fn now() -> Result<Duration, Failure> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.into())
}

/// A connection, and how much of its next message has come.
struct Half {
    stream: TcpStream,
    message: [u8; MESSAGE_BYTES],
    filled: usize,
}

fn sink(order: &Order) -> Result<Value, Failure> {
    let listener = TcpListener::bind(order.address)?;
    say_ready()?;
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    let mut halves = Vec::with_capacity(order.size);
    for at in 0..order.size {
        let (stream, _) = listener.accept()?;
        stream.set_nonblocking(true)?;
        epoll.add(&stream, EpollEvent::new(EpollFlags::EPOLLIN, at as u64))?;
        halves.push(Half { stream, message: [0; MESSAGE_BYTES], filled: 0 });
    }
    let mut window = Window::new(order.window);
    let mut delays_us = Vec::new();
    let mut ready = vec![EpollEvent::empty(); 256];
    let patience = EpollTimeout::try_from(PATIENCE).map_err(|_| Failure("PATIENCE".into()))?;
    loop {
        let count = epoll.wait(&mut ready, patience)?;
        if count == 0 {
            return Err(Failure("nothing came".to_owned()));
        }
        for event in &ready[..count] {
            let half = &mut halves[event.data() as usize];
            while take(half)? {
                let due = half.message.first_chunk::<8>().map_or(0, |it| u64::from_le_bytes(*it));
                delays_us.push((now()?.as_nanos() as f64 - due as f64) / 1e3);
                if !window.count(MESSAGE_BYTES, 1, 0) {
                    return report(&window, delays_us);
                }
            }
        }
    }
}

/// Reads what there is; true when a message is whole.
fn take(half: &mut Half) -> Result<bool, Failure> {
    half.filled %= MESSAGE_BYTES;
    match half.stream.read(&mut half.message[half.filled..]) {
        Ok(0) => Err(Failure("the source left before the window was over".to_owned())),
        Ok(len) => {
            half.filled += len;
            Ok(half.filled == MESSAGE_BYTES)
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn report(window: &Window, mut delays_us: Vec<f64>) -> Result<Value, Failure> {
    // What came in the warm-up is no part of it.
    let all = window.report("sink")?;
    let count = all["messages"].as_u64().unwrap_or(0) as usize;
    delays_us.drain(..delays_us.len().saturating_sub(count));
    delays_us.sort_by(f64::total_cmp);
    let mut all = all;
    all["p50_us"] = percentile(&delays_us, 0.5).into();
    all["p99_us"] = percentile(&delays_us, 0.99).into();
    Ok(all)
}

fn source(order: &Order) -> Result<Value, Failure> {
    let connect = |_| {
        let stream = TcpStream::connect_timeout(&order.address, PATIENCE)?;
        stream.set_nodelay(true)?;
        Ok(stream)
    };
    let mut streams = (0..order.size).map(connect).collect::<Result<Vec<_>, std::io::Error>>()?;
    let mut window = Window::new(order.window);
    let (begun, mut at) = (now()?, 0_u32);
    let mut message = [7; MESSAGE_BYTES];
    while !window.is_past_grace() {
        let due = begun + EVERY * at;
        let left = due.saturating_sub(now()?);
        if !left.is_zero() {
            std::thread::sleep(left);
        }
        message[..8].copy_from_slice(&(due.as_nanos() as u64).to_le_bytes());
        let place = at as usize % streams.len();
        // The sink leaves when its window is over.
        if streams[place].write_all(&message).is_err() {
            break;
        }
        window.count(MESSAGE_BYTES, 1, 0);
        at += 1;
    }
    window.end();
    window.report("source")
}
