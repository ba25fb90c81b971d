//! A flow that is lost while its session lives: calls that wait for it end, and say why.

use crate::world::{TWO_WAY, endpoint, serve, watched};
use dacapo::access::messages::{Cause, Outcome, ROUTINE};
use dacapo::{Session, Uri};
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread;

/// What lies between two ends: datagrams always go, streams until they are cut.
struct Between {
    port: u16,
    streams: Arc<Mutex<Vec<TcpStream>>>,
}

impl Between {
    fn begin(to: SocketAddr) -> Self {
        let bind = || {
            let listener = TcpListener::bind("127.0.0.1:0").ok()?;
            let port = listener.local_addr().ok()?.port();
            Some((listener, UdpSocket::bind(("127.0.0.1", port)).ok()?, port))
        };
        let (listener, socket, port) = (0..100).find_map(|_| bind()).unwrap();
        let streams = Arc::<Mutex<Vec<TcpStream>>>::default();
        let kept = Arc::clone(&streams);
        thread::spawn(move || pass_streams(&listener, to, &kept));
        thread::spawn(move || pass_datagrams(&socket, to));
        Self { port, streams }
    }

    fn cut(&self) {
        let streams = std::mem::take(&mut *self.streams.lock().unwrap());
        assert!(!streams.is_empty(), "there is none");
        // One that an end has closed is cut.
        streams.iter().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

fn pass_streams(listener: &TcpListener, to: SocketAddr, kept: &Mutex<Vec<TcpStream>>) {
    for here in listener.incoming() {
        let (here, there) = (here.unwrap(), TcpStream::connect(to).unwrap());
        for (from, to) in [(&here, &there), (&there, &here)] {
            let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
            // It ends when it is cut.
            thread::spawn(move || io::copy(&mut from, &mut to));
        }
        kept.lock().unwrap().extend([here, there]);
    }
}

fn pass_datagrams(socket: &UdpSocket, to: SocketAddr) {
    let mut sockets = BTreeMap::<SocketAddr, UdpSocket>::new();
    let mut datagram = vec![0; 1 << 16];
    while let Ok((len, from)) = socket.recv_from(&mut datagram) {
        let there = sockets.entry(from).or_insert_with(|| {
            let there = UdpSocket::bind("127.0.0.1:0").unwrap();
            there.connect(to).unwrap();
            let (back, socket) = (there.try_clone().unwrap(), socket.try_clone().unwrap());
            thread::spawn(move || {
                let mut datagram = vec![0; 1 << 16];
                while let Ok(len) = back.recv(&mut datagram) {
                    // What is lost is lost.
                    let _ = socket.send_to(&datagram[..len], from);
                }
            });
            there
        });
        let _ = there.send(&datagram[..len]);
    }
}

/// A session with a flow over a stream and one over datagrams: what lies between, and both ends.
fn active_pair() -> (Between, Session, Session) {
    let file = TWO_WAY.replacen("\"udp\"", "\"tcp\"", 1);
    let creator = serve(&file.replacen("bound = \"200 Mbit/s\"\n", "", 1));
    let uri = creator.uri().unwrap();
    let between = Between::begin(format!("127.0.0.1:{}", uri.port).parse().unwrap());
    let uri = Uri { port: between.port, ..uri };
    let participant = endpoint().connect(&uri.to_string()).unwrap();
    let creator = creator.accept().unwrap();
    participant.activate().unwrap();
    creator.activate().unwrap();
    (between, creator, participant)
}

/// The session goes on without the flow.
fn assert_alive(creator: &Session, participant: &Session) {
    participant.sender("back").unwrap().send(b"alive").unwrap();
    assert_eq!(creator.receiver("back").unwrap().recv().unwrap(), Some(b"alive".to_vec()));
}

#[test]
fn messages_fail_with_their_flow_and_calls_that_wait_for_it_say_why() {
    watched(|| {
        let (between, creator, participant) = active_pair();
        let receiver = participant.message_receiver("there").unwrap();
        let sender = creator.message_sender("there").unwrap();
        sender.send_message(ROUTINE, b"first".to_vec()).unwrap();
        assert_eq!(receiver.get_message().unwrap().unwrap().data, b"first");
        // Nobody reads on, so it holds up what comes after it.
        let long = sender.send_message(ROUTINE, vec![7; 100 << 20]).unwrap();
        let waits = thread::spawn({
            let sender = sender.clone();
            move || sender.wait(long)
        });
        let sends = thread::spawn({
            let sender = sender.clone();
            move || sender.send_message(ROUTINE, vec![1])
        });
        between.cut();
        let outcome = waits.join().unwrap().unwrap();
        assert!(matches!(outcome, Outcome::Failed(Cause::UnderWay { .. })), "{outcome}");
        let error = sends.join().unwrap().unwrap_err();
        assert_eq!(sender.send_message(ROUTINE, vec![1]), Err(error));
        let sums = sender.sums();
        assert!(sums.closes() && (sums.sent, sums.failed, sums.open) == (1, 1, 0), "{sums:?}");
        assert_alive(&creator, &participant);
    });
}

#[test]
fn who_sends_units_by_a_flow_that_fails_learns_of_it() {
    watched(|| {
        let (between, creator, participant) = active_pair();
        let creator = Arc::new(creator);
        let sends = thread::spawn({
            let creator = Arc::clone(&creator);
            move || loop {
                if let Err(error) = creator.sender("there").and_then(|mut it| it.send(&[7; 1_000]))
                {
                    return error;
                }
            }
        });
        assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), Some(vec![7; 1_000]));
        between.cut();
        let error = sends.join().unwrap();
        assert_eq!(creator.sender("there").and_then(|mut it| it.send(b"more")), Err(error));
        assert_alive(&creator, &participant);
    });
}
