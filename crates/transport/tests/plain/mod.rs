//! A bare connection for the suite of streams, whatever carries its bytes.

use dacapo_base::Address;
use dacapo_transport::conformance::Bare;
use std::io::{self, Read, Write};
use std::net::SocketAddr;

/// What reads and writes, and the address of its end.
pub struct Plain<S>(pub S, pub SocketAddr);

impl<S: Read + Write> Bare for Plain<S> {
    fn local_addr(&self) -> Address {
        self.1.into()
    }
}

impl<S: Read> Read for Plain<S> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl<S: Write> Write for Plain<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
