//! T-module `toy-unix`: datagrams as records of a Unix stream socket, one for each flow.
//!
//! ```text
//!   listen   "dacapo-toy-127.0.0.1:19980", an abstract name: that of control's address
//!   dial     connect, preface and token, records
//! ```
//!
//! A toy: between two ends of one host, which listen at the address that is dialed; `shm` is for
//! use.

use dacapo_lift::{Cost, Figures, Property, Setting, TransportProfile, TransportSpec};
use dacapo_transport::entry::{
    Dial, Dialed, Opened, StreamCarrier, StreamListener, TransportEntry,
};
use dacapo_transport::stream::{Connection, Connections, Listener, capabilities};
use dacapo_transport::{Capabilities, DATA_LANES_MAX};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// What the catalogue is told: name, number, what it gives to a graph.
pub static SPEC: TransportSpec = TransportSpec {
    name: "toy-unix",
    id: 0xF0E9,
    summary: "datagrams as records of a Unix socket between two ends of one host; a toy",
    properties: &[Property::Boundaries, Property::Order, Property::NoDuplicates, Property::NoLoss],
    datagram_len: 65_000,
    any_path: true,
    streams: true,
    same_host: true,
    groups: false,
    over: None,
    port: None,
    profile: &Local,
};

/// The catalogue's entry, for [`dacapo::Builder::transport`].
pub fn entry() -> TransportEntry {
    TransportEntry::new(&SPEC, |_| Ok(Opened::Streams(Box::new(Carrier))))
}

#[derive(Debug)]
struct Local;

impl TransportProfile for Local {
    fn figures(&self, setting: &Setting) -> Figures {
        let bound_bps = if setting.bound_bps == 0 { u64::MAX } else { setting.bound_bps };
        Figures {
            loss_ppb: 0,
            loss_runs_ppb: 0,
            delay_ns: 100_000,
            jitter_ns: 100_000,
            rate_bps: bound_bps.min(10_000_000_000),
        }
    }

    fn cost(&self) -> Cost {
        Cost { train_ps: 8_000_000, packet_ps: 300_000, byte_ps: 400, wire_milli: 1_000 }
    }
}

struct Carrier;

impl StreamCarrier for Carrier {
    fn listen(&mut self, control: &[SocketAddr]) -> io::Result<StreamListener> {
        let mut unix = Connections::new(DATA_LANES_MAX)?;
        for &local in control {
            let inner = UnixListener::bind_addr(&name(local)?)?;
            inner.set_nonblocking(true)?;
            let next = AtomicU16::new(0);
            unix.add_listener(Door { inner, local, next }, local)?;
        }
        Ok(StreamListener { transport: Box::new(unix), port: None })
    }

    fn dial(&mut self, Dial { remote, token, .. }: Dial) -> Dialed {
        let mut unix = Connections::<Door>::new(DATA_LANES_MAX)?;
        let pipe = Pipe::of(UnixStream::connect_addr(&name(remote)?)?)?;
        unix.add_dialed(pipe, [remote, remote], token)?;
        Ok(Box::new(unix))
    }

    fn find(&mut self, remote: SocketAddr) -> bool {
        name(remote).and_then(|at| UnixStream::connect_addr(&at)).is_ok()
    }
}

/// The name under which flows are waited for, beside control at this address.
fn name(control: SocketAddr) -> io::Result<UnixAddr> {
    UnixAddr::from_abstract_name(format!("dacapo-toy-{control}"))
}

struct Door {
    inner: UnixListener,
    local: SocketAddr,
    /// Who has come so far, for a name of each: Unix sockets that dial have none.
    next: AtomicU16,
}

impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl Listener for Door {
    type Connection = Pipe;

    const CAPABILITIES: Capabilities = capabilities("toy-unix", false);
    const ROOM_IS_POLLED: bool = true;

    fn accept(&self) -> io::Result<Option<(Pipe, SocketAddr)>> {
        match self.inner.accept() {
            Ok((stream, _)) => {
                let [high, low] = self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes();
                let remote = ([127, 1, high, low], self.local.port()).into();
                Ok(Some((Pipe::of(stream)?, remote)))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

struct Pipe(UnixStream);

impl Pipe {
    fn of(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self(stream))
    }
}

impl AsFd for Pipe {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.0.read_vectored(into)
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Connection for Pipe {
    const SHORT_READ_IS_ALL: bool = false;

    fn end_writing(&mut self) {
        // One that is gone has nobody left to tell.
        let _ = self.0.shutdown(std::net::Shutdown::Write);
    }

    /// What is written is read, or the other end is gone: there is nothing to wait for.
    fn set_patience(&mut self, _: Duration) {}
}
