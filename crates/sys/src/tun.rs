//! [`Tun`]: a network interface whose other side is a descriptor of this process.
//!
//! IP packets, one per call, without a header before them.
//!
//! ```text
//!   programs -> routing -> interface NAME -> Tun::recv
//!   programs <- routing <- interface NAME <- Tun::send
//! ```
//!
//! Invariants: non-blocking and close-on-exec; the interface is gone when the value is; it belongs
//! to the namespace of the thread that made it, whoever reads it.
//!
//! Source: Documentation/networking/tuntap.rst of Linux.

use crate::interface::{Request, control};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// Where devices are made.
pub const PATH: &str = "/dev/net/tun";

/// A TUN device.
#[derive(Debug)]
pub struct Tun {
    file: File,
    name: String,
}

impl Tun {
    /// A new device in the namespace of the calling thread; `%d` in the name stands for the first
    /// free number. It is down and has no address.
    ///
    /// # Errors
    /// `NotFound` where the kernel has no TUN, `PermissionDenied` without the right to administer
    /// the network, `ResourceBusy` when the name is taken.
    pub fn create(name: &str) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
        let file = options.open(PATH)?;
        let mut request = Request::of(name)?;
        let flags = i16::try_from(libc::IFF_TUN | libc::IFF_NO_PI).unwrap_or(0x1001);
        request.put(&flags.to_ne_bytes());
        control(file.as_fd(), libc::TUNSETIFF, &mut request)?;
        Ok(Self { file, name: request.name() })
    }

    /// The name that the kernel gave.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The next packet that is sent through the interface: its length in `into`, which cuts it when
    /// it is too short. `None` when there is none now.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn recv(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.file).read(into) {
                Ok(len) => return Ok(Some(len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the interface a packet as if it had come from a network.
    ///
    /// # Errors
    /// `InvalidInput` when it is no IP packet, `EIO` when the interface is down or gone.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        loop {
            match (&self.file).write(packet) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
