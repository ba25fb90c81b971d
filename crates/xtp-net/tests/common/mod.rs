//! What the tests share: ends in threads, and what goes between them.

#![allow(dead_code, reason = "each test uses a part")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

pub mod cable;
#[path = "../../../xtp/tests/common/gate.rs"]
pub mod gate;
#[path = "../../../sys/tests/common/veth.rs"]
pub mod veth;

use dacapo_base::Random;
use dacapo_xtp::wire::Service;
use dacapo_xtp::{Config, Listen, Message, Mode, Open, Read};
use dacapo_xtp_net::{CallError, Connectionless, Host, Incoming};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The port of XTP in these tests.
pub const PORT: u16 = 5_000;
/// Ends a test that hangs.
pub const LONG: Duration = Duration::from_secs(120);
/// How often an end looks whether it is to end.
const SLICE: Duration = Duration::from_millis(50);

pub fn host(network: impl Connectionless + 'static) -> Host {
    Host::new(Box::new(network), Config::default()).unwrap()
}

/// An end in a thread of its own, which gives back what it is sent, until it is stopped.
pub struct Echo {
    pub address: SocketAddr,
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Host>,
}

impl Echo {
    pub fn new(mut host: Host) -> Self {
        let address = host.local();
        host.listen(Listen::on(PORT)).unwrap();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = std::thread::spawn(move || {
            while !over.load(Ordering::Relaxed) {
                match host.accept(host.after(SLICE)) {
                    Ok(incoming) => echo(&mut host, &incoming),
                    Err(CallError::TimedOut) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            host
        });
        Self { address, is_over, thread }
    }

    pub fn stop(self) -> Host {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Gives back what comes, until it is over; what a peer breaks off is left.
fn echo(host: &mut Host, incoming: &Incoming) {
    let until = host.after(LONG);
    let mut buffer = vec![0; 32 << 10];
    let given_back = loop {
        match host.read(incoming.id, &mut buffer, until) {
            Ok(Read::Data { len, is_end, tag }) => {
                let message = Message { is_end, tag, ..Message::part(&buffer[..len]) };
                if let Err(error) = host.write(incoming.id, &message, until) {
                    break Err(error);
                }
            }
            Ok(Read::Finished) => break host.close(incoming.id, until),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    if given_back.is_err() {
        let _ = host.release(incoming.id);
    }
}

/// How an association with `peer` is opened from here.
pub fn open(host: &Host, peer: SocketAddr, service: Service) -> Open {
    let at = |address: SocketAddr, port| SocketAddr::new(address.ip(), port);
    let ends = Some((at(peer, PORT), at(host.local(), 4_000)));
    let mode = Mode { fast_report: true, ..Mode::default() };
    Open { peer, ends, service, mode }
}

pub fn random_bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Random::from_number(seed).fill(&mut bytes);
    bytes
}

/// Sends a stream and reads what comes back: in turns, so that neither window closes for good.
pub fn send_and_read_back(host: &mut Host, peer: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let until = host.after(LONG);
    let open = open(host, peer, Service::Stream);
    let id = host.open(&open).unwrap();
    let mut back = Vec::new();
    let mut buffer = vec![0; 32 << 10];
    for chunk in bytes.chunks(16 << 10) {
        host.write(id, &Message::part(chunk), until).unwrap();
        let wanted = back.len() + chunk.len();
        while back.len() < wanted {
            let Read::Data { len, .. } = host.read(id, &mut buffer, until).unwrap() else {
                panic!("it ended after {} bytes", back.len());
            };
            back.extend_from_slice(&buffer[..len]);
        }
    }
    host.close(id, until).unwrap();
    back
}

/// A request and its response.
pub fn transact(host: &mut Host, peer: SocketAddr, request: &[u8]) -> Result<Vec<u8>, CallError> {
    let until = host.after(LONG);
    let open = open(host, peer, Service::Transaction);
    let id = host.open(&open)?;
    host.write(id, &Message::whole(request), until)?;
    host.finish(id)?;
    let mut response = vec![0; request.len() + 1];
    let mut len = 0;
    while let Read::Data { len: more, .. } = host.read(id, &mut response[len..], until)? {
        len += more;
    }
    host.close(id, until)?;
    response.truncate(len);
    Ok(response)
}

/// Every packet that a host gave to its network is accounted for.
pub fn closes(host: &Host) {
    let counters = host.counters();
    let dropped: u64 = counters.packets_dropped.iter().sum();
    let sum = counters.packets_sent + dropped + host.packets_waiting();
    assert_eq!(counters.packets_given, sum, "{counters:?}");
}

/// Bytes that a capture is written to, shared with who reads it afterwards.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
