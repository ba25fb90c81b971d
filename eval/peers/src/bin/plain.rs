//! The controls: what the kernel gives a plain program.
//!
//! ```text
//!   tcp   one connection, TCP_NODELAY, messages of SIZE written and read whole
//!   setup the same, with a connection for each message there and back
//!   udp   connected sockets, one datagram of SIZE per call
//!   gso   the same datagrams, as many per call as UDP_SEGMENT takes, received with UDP_GRO
//! ```
//!
//! Invariant: every datagram begins with its number, which is all that a sink reads of it.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use nix::sys::socket::{setsockopt, sockopt};
use peers::{
    Failure, LAST, Order, PATIENCE, Role, RoundTrips, Sequence, Window, say_ready, sockets,
};
use serde_json::Value;
use socket2::SockRef;

fn main() -> ExitCode {
    peers::run(|order| match (order.kind.as_str(), order.role) {
        ("tcp", Role::Sink) => tcp_sink(order),
        ("tcp", Role::Source) => tcp_source(order),
        ("tcp", Role::Echo) => tcp_echo(order),
        ("tcp", Role::Ping) => tcp_ping(order),
        ("setup", Role::Echo) => setup_echo(order),
        ("setup", Role::Ping) => setup_ping(order),
        ("udp", Role::Sink) => udp_sink(order, false),
        ("udp", Role::Source) => udp_source(order, 1),
        ("gso", Role::Sink) => udp_sink(order, true),
        ("gso", Role::Source) => udp_source(order, sockets::segments(order.size)),
        ("udp", Role::Echo) => udp_echo(order),
        ("udp", Role::Ping) => udp_ping(order),
        _ => Err(Failure(
            "the kinds are tcp, udp, setup (echo and ping) and gso (sink and source)".to_owned(),
        )),
    })
}

/// Calls `io` again for as long as it says that it would have to wait, when spinning.
fn again<T>(mut io: impl FnMut() -> io::Result<T>, is_spinning: bool) -> io::Result<T> {
    loop {
        match io() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock && is_spinning => {
                std::hint::spin_loop();
            }
            other => return other,
        }
    }
}

fn accept(order: &Order) -> Result<TcpStream, Failure> {
    let listener = TcpListener::bind(order.address)?;
    say_ready()?;
    let (stream, _) = listener.accept()?;
    prepare(&stream, order)?;
    Ok(stream)
}

fn connect(order: &Order) -> Result<TcpStream, Failure> {
    let stream = TcpStream::connect_timeout(&order.address, PATIENCE)?;
    prepare(&stream, order)?;
    Ok(stream)
}

fn prepare(stream: &TcpStream, order: &Order) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nonblocking(order.is_spinning)
}

fn tcp_sink(order: &Order) -> Result<Value, Failure> {
    let mut stream = accept(order)?;
    let mut buffer = vec![0; order.size];
    let mut window = Window::new(order.window);
    loop {
        let len = again(|| stream.read(&mut buffer), order.is_spinning)?;
        if len == 0 {
            return Err(Failure("the source left before the window was over".to_owned()));
        }
        if !window.count(len, 1, 0) {
            return window.report("sink");
        }
    }
}

fn tcp_source(order: &Order) -> Result<Value, Failure> {
    let mut stream = connect(order)?;
    let message = vec![7; order.size];
    let mut window = Window::new(order.window);
    while !window.is_past_grace() {
        // The sink leaves when its window is over, which ends the connection.
        match again(|| stream.write(&message), order.is_spinning) {
            Ok(len) => window.count(len, 1, 0),
            Err(_) => break,
        };
    }
    window.end();
    window.report("source")
}

fn read_whole(stream: &mut TcpStream, message: &mut [u8], is_spinning: bool) -> io::Result<bool> {
    let mut filled = 0;
    while filled < message.len() {
        match again(|| stream.read(&mut message[filled..]), is_spinning)? {
            0 => return Ok(false),
            len => filled += len,
        }
    }
    Ok(true)
}

fn write_whole(stream: &mut TcpStream, message: &[u8], is_spinning: bool) -> io::Result<()> {
    let mut written = 0;
    while written < message.len() {
        written += again(|| stream.write(&message[written..]), is_spinning)?;
    }
    Ok(())
}

fn tcp_echo(order: &Order) -> Result<Value, Failure> {
    let mut stream = accept(order)?;
    let mut message = vec![0; order.size];
    while read_whole(&mut stream, &mut message, order.is_spinning)? {
        write_whole(&mut stream, &message, order.is_spinning)?;
    }
    Ok(echoed())
}

fn tcp_ping(order: &Order) -> Result<Value, Failure> {
    let mut stream = connect(order)?;
    let mut message = vec![7; order.size];
    let mut round_trips = RoundTrips::new(order.window);
    loop {
        let sent = Instant::now();
        write_whole(&mut stream, &message, order.is_spinning)?;
        if !read_whole(&mut stream, &mut message, order.is_spinning)? {
            return Err(Failure("the other end left".to_owned()));
        }
        if !round_trips.book(sent) {
            return Ok(round_trips.report(order.is_spinning));
        }
    }
}

fn setup_echo(order: &Order) -> Result<Value, Failure> {
    let listener = TcpListener::bind(order.address)?;
    say_ready()?;
    let mut message = vec![0; order.size];
    while message[0] != LAST {
        let (mut stream, _) = listener.accept()?;
        prepare(&stream, order)?;
        if read_whole(&mut stream, &mut message, order.is_spinning)? {
            write_whole(&mut stream, &message, order.is_spinning)?;
        }
    }
    Ok(echoed())
}

fn setup_ping(order: &Order) -> Result<Value, Failure> {
    let mut message = vec![7; order.size];
    let mut round_trips = RoundTrips::new(order.window);
    loop {
        let sent = Instant::now();
        let mut stream = connect(order)?;
        // What was connected leaves no port behind that waits: there are not enough for all.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        write_whole(&mut stream, &message, order.is_spinning)?;
        if !read_whole(&mut stream, &mut message, order.is_spinning)? {
            return Err(Failure("the other end left".to_owned()));
        }
        let is_more = round_trips.book(sent);
        if message[0] == LAST || order.window.is_zero() {
            return Ok(round_trips.report(order.is_spinning));
        }
        if !is_more {
            message[0] = LAST;
        }
    }
}

fn udp_sink(order: &Order, is_gro: bool) -> Result<Value, Failure> {
    let socket = sockets::bind(order.address)?;
    if is_gro {
        setsockopt(&socket, sockopt::UdpGroSegment, &true)?;
    }
    sockets::answer(&socket)?;
    let mut buffer = vec![0; if is_gro { 1 << 16 } else { order.size }];
    let mut window = Window::new(order.window);
    let mut sequence = Sequence::default();
    socket.set_nonblocking(order.is_spinning)?;
    loop {
        let len = again(|| socket.recv(&mut buffer), order.is_spinning)?;
        let (count, lost) = sequence.take_all(&buffer[..len], order.size);
        if !window.count(len, count, lost) {
            return window.report("sink");
        }
    }
}

fn udp_source(order: &Order, segment_count: usize) -> Result<Value, Failure> {
    let socket = sockets::call(order.address)?;
    if segment_count > 1 {
        let size = i32::try_from(order.size).map_err(|_| Failure("SIZE is too large".into()))?;
        setsockopt(&socket, sockopt::UdpGsoSegment, &size)?;
    }
    let mut train = vec![7; order.size * segment_count];
    let mut window = Window::new(order.window);
    let mut sequence = Sequence::default();
    socket.set_nonblocking(order.is_spinning)?;
    while !window.is_past_grace() {
        for datagram in train.chunks_mut(order.size) {
            sequence.put(datagram);
        }
        match again(|| socket.send(&train), order.is_spinning) {
            Ok(len) => window.count(len, segment_count as u64, 0),
            // The sink leaves when its window is over.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => break,
            Err(error) => return Err(error.into()),
        };
    }
    window.end();
    window.report("source")
}

fn udp_echo(order: &Order) -> Result<Value, Failure> {
    let socket = sockets::bind(order.address)?;
    sockets::answer(&socket)?;
    let mut message = vec![0; order.size];
    let mut last = Instant::now();
    socket.set_nonblocking(order.is_spinning)?;
    socket.set_read_timeout(Some(Duration::from_secs(1)))?;
    // The end of a ping cannot be seen over UDP; a second of silence is it.
    loop {
        match socket.recv(&mut message) {
            Ok(len) => {
                socket.send(&message[..len])?;
                last = Instant::now();
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if last.elapsed() > Duration::from_secs(1) {
                    return Ok(echoed());
                }
                std::hint::spin_loop();
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(echoed()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn udp_ping(order: &Order) -> Result<Value, Failure> {
    let socket = sockets::call(order.address)?;
    let mut message = vec![7; order.size];
    let mut round_trips = RoundTrips::new(order.window);
    socket.set_nonblocking(order.is_spinning)?;
    loop {
        let sent = Instant::now();
        socket.send(&message)?;
        again(|| socket.recv(&mut message), order.is_spinning)?;
        if !round_trips.book(sent) {
            return Ok(round_trips.report(order.is_spinning));
        }
    }
}

fn echoed() -> Value {
    serde_json::json!({ "role": "echo" })
}
