//! Local stream sockets with the credentials of the other end.
//!
//! A listener whose socket file only its owner can open, and who is at the other end of a stream.
//!
//! Invariants: the credentials are those at the time of the connect, written by the kernel; the
//! socket file is removed by the drop.
//!
//! Source: unix(7), `SO_PEERCRED` in socket(7).

use socket2::{Domain, SockAddr, Socket, Type};
use std::fs;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Who connected, as the kernel noted it then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Effective user id.
    pub uid: u32,
    /// Effective group id.
    pub gid: u32,
    /// Process id; it may have ended and been given to another process since, so it is for display.
    pub pid: i32,
}

/// The credentials of the other end of a stream.
///
/// # Errors
/// When the stream is not a local one.
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    peer_of(stream.as_fd())
}

/// The same of any socket.
pub(crate) fn peer_of(socket: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut found = libc::ucred { pid: 0, uid: u32::MAX, gid: u32::MAX };
    let mut len = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the pointer and the length describe `found`, which outlives the call, and any bytes
    // are a valid ucred.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut found).cast(),
            &raw mut len,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    if len as usize != size_of::<libc::ucred>() {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    Ok(Peer { uid: found.uid, gid: found.gid, pid: found.pid })
}

/// A listening local socket, non-blocking, mode 0600.
#[derive(Debug)]
pub struct Listener {
    inner: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Listens at `path`. A socket file there that nobody answers at is replaced.
    ///
    /// Put it into a directory that only the owner can enter: between the making of the file and
    /// the setting of its mode others could open it.
    ///
    /// # Errors
    /// `AddrInUse` when somebody listens there, or when the path is a file of another kind.
    pub fn bind(path: &Path) -> io::Result<Self> {
        let inner = match UnixListener::bind(path) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_stale(path) => {
                fs::remove_file(path)?;
                UnixListener::bind(path)?
            }
            result => result?,
        };
        let listener = Self { inner, path: path.to_path_buf() };
        fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
        listener.inner.set_nonblocking(true)?;
        Ok(listener)
    }

    /// The next stream, non-blocking, and who is at its other end; `None` when nobody waits.
    ///
    /// # Errors
    /// When there is no descriptor left, or the credentials cannot be read.
    pub fn accept(&self) -> io::Result<Option<(UnixStream, Peer)>> {
        match self.inner.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                let peer = peer(&stream)?;
                Ok(Some((stream, peer)))
            }
            // Aborted: the other end left between its connect and now.
            Err(error) if is_nobody(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Where the socket is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Somebody may have removed it before.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_nobody(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | Interrupted | ConnectionAborted)
}

/// True for a socket file that refuses connections, which a killed process leaves behind.
fn is_stale(path: &Path) -> bool {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|about| about.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    is_socket && connect_now(path).err().is_some_and(refused)
}

/// Connects without waiting for a listener whose queue is full.
fn connect_now(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("dacapo-sys-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).unwrap();
        path
    }

    #[test]
    fn the_listener_sees_who_connects() {
        let folder = folder("peer");
        let listener = Listener::bind(&folder.join("s")).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let stream = UnixStream::connect(listener.path()).unwrap();
        let (_accepted, found) = listener.accept().unwrap().unwrap();
        assert_eq!(found.uid, crate::process::uid());
        assert_eq!(found.pid.cast_unsigned(), std::process::id());
        assert_eq!(peer(&stream).unwrap().uid, crate::process::uid());
        let mode = fs::metadata(listener.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        drop(listener);
        assert!(!folder.join("s").exists());
        fs::remove_dir(folder).unwrap();
    }

    #[test]
    fn a_socket_that_a_killed_process_left_is_replaced_and_a_living_one_is_not() {
        let folder = folder("stale");
        let path = folder.join("s");
        // The std listener leaves its file behind, as a killed process does.
        drop(UnixListener::bind(&path).unwrap());
        let listener = Listener::bind(&path).unwrap();
        assert_eq!(Listener::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        drop(listener);
        fs::write(&path, "precious").unwrap();
        assert_eq!(Listener::bind(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse);
        assert_eq!(fs::read(&path).unwrap(), b"precious");
        fs::remove_dir_all(folder).unwrap();
    }
}
