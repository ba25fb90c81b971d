//! TCP over loopback: what the wrappers promise. Waits end when what they wait for is there.

#![allow(clippy::unwrap_used)]

use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::tcp::{Config, Listener, Stream};
use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

fn hosts() -> Vec<SocketAddr> {
    let v6: SocketAddr = (Ipv6Addr::LOCALHOST, 0).into();
    let mut all = vec![(Ipv4Addr::LOCALHOST, 0).into()];
    if Listener::bind(v6, &Config::default()).is_ok() {
        all.push(v6);
    } else {
        dacapo_base::skip("IPv6: this host has no ::1");
    }
    all
}

/// Waits until a descriptor is ready as asked.
fn wait(fd: impl AsFd, interest: Interest) {
    let mut poller = Poller::new().unwrap();
    poller.add(fd.as_fd(), 0, interest).unwrap();
    let mut events = Vec::new();
    poller.wait(None, &mut events).unwrap();
}

fn accept(listener: &Listener) -> (Stream, SocketAddr) {
    loop {
        if let Some(accepted) = listener.accept().unwrap() {
            return accepted;
        }
        wait(listener, Interest::Read);
    }
}

fn pair(host: SocketAddr, config: &Config) -> (Stream, Stream) {
    let listener = Listener::bind(host, config).unwrap();
    let client = Stream::connect(listener.local_addr().unwrap(), config).unwrap();
    let (server, remote) = accept(&listener);
    assert_eq!(remote, client.local_addr().unwrap());
    assert_eq!(server.local_addr().unwrap(), listener.local_addr().unwrap());
    wait(&client, Interest::ReadWrite);
    (client, server)
}

fn read(stream: &mut Stream, count: usize) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0; 4_096];
    while all.len() < count {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => all.extend_from_slice(&buffer[..len]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => wait(&*stream, Interest::Read),
            Err(error) => panic!("{error}"),
        }
    }
    all
}

#[test]
fn several_parts_go_out_in_one_call_and_come_in_one() {
    for host in hosts() {
        let (mut client, mut server) = pair(host, &Config::default());
        let parts = [IoSlice::new(b"ab"), IoSlice::new(b""), IoSlice::new(b"cdef")];
        assert_eq!(client.write_vectored(&parts).unwrap(), 6);
        wait(&server, Interest::Read);
        let (mut first, mut second) = ([0; 4], [0; 9]);
        let mut room = [IoSliceMut::new(&mut first), IoSliceMut::new(&mut second)];
        assert_eq!(server.read_vectored(&mut room).unwrap(), 6);
        assert_eq!((&first, &second[..2]), (b"abcd", b"ef".as_slice()));
    }
}

#[test]
fn nothing_blocks() {
    for host in hosts() {
        let listener = Listener::bind(host, &Config::default()).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let (mut client, _server) = pair(host, &Config::default());
        let error = client.read(&mut [0; 8]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let block = vec![7; 64 * 1024];
        let error = loop {
            if let Err(error) = client.write(&block) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    }
}

#[test]
fn small_buffers_take_little() {
    let config = Config {
        recv_buffer_bytes: Some(4_096),
        send_buffer_bytes: Some(4_096),
        ..Config::default()
    };
    for host in hosts() {
        let (mut client, _server) = pair(host, &config);
        let mut taken = 0;
        while let Ok(len) = client.write(&[7; 500]) {
            taken += len;
        }
        assert!(taken < 100_000, "{taken} bytes");
    }
}

#[test]
fn the_end_of_writing_comes_after_what_was_written_and_the_other_way_stays_open() {
    for host in hosts() {
        let (mut client, mut server) = pair(host, &Config::default());
        client.write_all(b"last words").unwrap();
        client.end_writing().unwrap();
        assert_eq!(read(&mut server, usize::MAX), b"last words");
        server.write_all(b"heard").unwrap();
        assert_eq!(read(&mut client, 5), b"heard");
    }
}

#[test]
fn writing_to_a_connection_that_is_gone_is_an_error_and_no_signal() {
    for host in hosts() {
        let (mut client, server) = pair(host, &Config::default());
        drop(server);
        let error = loop {
            if let Err(error) = client.write(b"anybody?") {
                break error;
            }
        };
        let kinds = [ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

#[test]
fn nobody_listening_is_told_at_once_or_by_the_first_write() {
    for host in hosts() {
        // A port that was free a moment ago; its taker would have to be quick.
        let gone = Listener::bind(host, &Config::default()).unwrap().local_addr().unwrap();
        let error = match Stream::connect(gone, &Config::default()) {
            Err(error) => error,
            Ok(mut stream) => loop {
                match stream.write(b"hello?") {
                    Ok(_) => panic!("somebody listens"),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        wait(&stream, Interest::ReadWrite);
                    }
                    Err(error) => break error,
                }
            },
        };
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}

#[test]
fn a_living_listener_keeps_its_port_and_a_closed_one_gives_it_back_at_once() {
    for host in hosts() {
        let listener = Listener::bind(host, &Config::default()).unwrap();
        let address = listener.local_addr().unwrap();
        let error = Listener::bind(address, &Config::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AddrInUse);
        let client = Stream::connect(address, &Config::default()).unwrap();
        let (server, _) = accept(&listener);
        // Whoever closes first keeps the port in TIME_WAIT.
        drop(server);
        drop(listener);
        drop(client);
        Listener::bind(address, &Config::default()).unwrap();
    }
}

#[test]
fn one_port_serves_both_families_with_a_listener_each() {
    if hosts().len() < 2 {
        return;
    }
    let v6 = Listener::bind((Ipv6Addr::UNSPECIFIED, 0).into(), &Config::default()).unwrap();
    let port = v6.local_addr().unwrap().port();
    // Somebody else may have the port in the other family, but not because of us.
    match Listener::bind((Ipv4Addr::UNSPECIFIED, port).into(), &Config::default()) {
        Ok(v4) => assert_eq!(v4.local_addr().unwrap().port(), port),
        Err(error) => assert_eq!(error.kind(), ErrorKind::AddrInUse),
    }
    let by_v4 = Stream::connect((Ipv4Addr::LOCALHOST, port).into(), &Config::default());
    drop(by_v4);
    assert!(v6.accept().unwrap().is_none(), "an IPv6 listener takes IPv6 only");
}

#[test]
fn what_the_kernel_has_measured_of_a_connection_is_told() {
    for host in hosts() {
        let (mut client, mut server) = pair(host, &Config::default());
        for _ in 0..100 {
            client.write_all(&[7; 1_000]).unwrap();
            assert_eq!(read(&mut server, 1_000).len(), 1_000);
        }
        let seen = client.measured().unwrap();
        assert!(seen.rtt.as_nanos() > 0 && seen.rtt.as_secs() < 60, "{seen:?}");
        assert!(seen.sent >= 100 && seen.resent <= seen.sent, "{seen:?}");
        assert!((1_000..1 << 40).contains(&seen.window_bytes), "{seen:?}");
        assert!((8_000..1 << 50).contains(&seen.delivery_rate_bps), "{seen:?}");
    }
}
