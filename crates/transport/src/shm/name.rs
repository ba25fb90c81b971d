//! Where both ends meet: an abstract name that is made of the address that the host listens at.
//!
//! ```text
//!   serve(127.0.0.1:19980)    "dacapo-shm-1/127.0.0.1:19980"   <---- dial(127.0.0.1:19980)
//!   serve(0.0.0.0:19980)      "dacapo-shm-1/0.0.0.0:19980"     <---- the same, where the first is
//!                                                                    nobody's or another user's
//! ```
//!
//! Abstract names are of the network namespace, as ports are: who can reach the port from this
//! namespace can reach the name, and a name ends with its process.
//!
//! Another user may take a name before us; then this host serves without shared memory, and who
//! dials finds that it is not its own user's and goes on. Which stream it is, the token says, as
//! over TCP.
//!
//! Invariants: both ends are of one user, and both have looked; who is the user that a user
//! namespace shows for everybody it does not know is nobody's equal.
//!
//! Source: unix(7); `SO_PEERCRED` in socket(7); user_namespaces(7), "overflow".

use dacapo_sys::doorbell::{Doorbell, Listener};
use dacapo_sys::process;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What a user namespace shows for users that it does not know (`/proc/sys/kernel/overflowuid`,
/// which hardly anybody changes).
const OVERFLOW_UID: u32 = 65_534;

/// Why somebody who came, or was found, is nobody to talk to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is another user, with this id.
    User(u32),
    /// It gave so many descriptors, not one.
    Descriptors(usize),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(
                f,
                "the other end is of another user (id {uid}): shared memory is between processes \
                 of one user"
            ),
            Self::Descriptors(count) => {
                write!(f, "the other end gave {count} descriptors in place of its memory")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// The name of an address.
fn of(address: SocketAddr) -> String {
    format!("dacapo-shm-1/{}", SocketAddr::new(address.ip(), address.port()))
}

/// The address that takes what comes to any address of the same family.
fn wildcard(address: SocketAddr) -> SocketAddr {
    let any = match address.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(any, address.port())
}

/// Listens under the name of an address.
pub(super) fn listen(address: SocketAddr) -> io::Result<Listener> {
    Listener::bind(&of(address))
}

/// Connects to who listens at this address, or at any, and is of this user.
pub(super) fn connect(address: SocketAddr) -> io::Result<Doorbell> {
    let mut names = vec![of(address), of(wildcard(address))];
    names.dedup();
    let mut failure = io::Error::from(io::ErrorKind::ConnectionRefused);
    for name in names {
        match Doorbell::connect(&name).and_then(of_this_user) {
            Ok(doorbell) => return Ok(doorbell),
            // Nobody there says less than what was found at the name before.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

fn of_this_user(doorbell: Doorbell) -> io::Result<Doorbell> {
    let uid = doorbell.peer()?.uid;
    check_user(uid).map_err(|why| io::Error::new(io::ErrorKind::PermissionDenied, why))?;
    Ok(doorbell)
}

/// Whether the other end is of this user.
pub(super) fn check_user(uid: u32) -> Result<(), Refusal> {
    is_same_user(uid, process::uid()).then_some(()).ok_or(Refusal::User(uid))
}

fn is_same_user(theirs: u32, ours: u32) -> bool {
    theirs == ours && ours != OVERFLOW_UID
}

/// The address that stands for the end of a dialer, which has no port: the number that the kernel
/// gave to its socket, as a host of 127/8. No two that live have the same.
pub(super) fn stands_for(number: u32, port: u16) -> SocketAddr {
    let [_, high, middle, low] = number.to_be_bytes();
    SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, high, middle, low)), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_one_address_whatever_else_an_address_says() {
        let four: SocketAddr = "127.0.0.1:19980".parse().unwrap();
        assert_eq!(of(four), "dacapo-shm-1/127.0.0.1:19980");
        assert_eq!(of(wildcard(four)), "dacapo-shm-1/0.0.0.0:19980");
        let six: SocketAddr = "[::1]:19980".parse().unwrap();
        assert_eq!((of(six), of(wildcard(six))), {
            ("dacapo-shm-1/[::1]:19980".to_owned(), "dacapo-shm-1/[::]:19980".to_owned())
        });
        // A link-local address has a scope.
        let scoped: SocketAddr = "[fe80::1%3]:19980".parse().unwrap();
        assert_eq!(of(scoped), "dacapo-shm-1/[fe80::1]:19980");
    }

    #[test]
    fn the_user_of_nobody_is_nobodys_equal() {
        assert!(is_same_user(1_000, 1_000) && is_same_user(0, 0));
        assert!(!is_same_user(0, 1_000) && !is_same_user(1_000, 0));
        assert!(!is_same_user(OVERFLOW_UID, OVERFLOW_UID));
        let text = check_user(process::uid().wrapping_add(1)).unwrap_err().to_string();
        assert!(text.contains("one user"), "{text}");
    }

    #[test]
    fn every_number_has_an_address_of_its_own() {
        assert_eq!(stands_for(0, 7), "127.0.0.0:7".parse().unwrap());
        assert_eq!(stands_for(0xf_ffff, 7), "127.15.255.255:7".parse().unwrap());
        assert_eq!(stands_for(0x1_0203, 7), "127.1.2.3:7".parse().unwrap());
    }
}
