//! Network interfaces of the calling thread's namespace: numbers, addresses, MTU, up.
//!
//! The few ioctls that a new device needs before it carries packets, so that no program such as
//! `ip` must be installed.
//!
//! ```text
//!   Request = struct ifreq:   name (16 bytes, ends with 0) | a number or a socket address
//! ```
//!
//! Invariant: a request that the kernel writes to is as long as the longest `ifreq` of any
//! architecture.
//!
//! Source: netdevice(7); `struct ifreq` and `struct in6_ifreq` of the Linux UAPI.

use crate::poll::owned;
use std::ffi::{CStr, c_void};
use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The longest name of an interface in bytes; the kernel ends it with a zero.
pub const NAME_LEN_MAX: usize = 15;

/// An address and the length of its network's prefix, such as 10.77.0.1/24.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// Bits of it that name the network: at most 32 or 128.
    pub prefix_len: u8,
}

/// Brings an interface up.
///
/// # Errors
/// `NotFound` or `ENODEV` when there is none of this name here, `PermissionDenied` without the
/// right to administer the network.
pub fn up(name: &str) -> io::Result<()> {
    let socket = socket(libc::AF_INET)?;
    let mut request = Request::of(name)?;
    control(socket.as_fd(), libc::SIOCGIFFLAGS, &mut request)?;
    let flags = request.short() | i16::try_from(libc::IFF_UP).unwrap_or(1);
    request.put(&flags.to_ne_bytes());
    control(socket.as_fd(), libc::SIOCSIFFLAGS, &mut request)
}

/// Sets the longest packet in bytes that an interface takes.
///
/// # Errors
/// As [`up`], and `InvalidInput` when the device cannot.
pub fn set_mtu(name: &str, mtu: u16) -> io::Result<()> {
    let socket = socket(libc::AF_INET)?;
    let mut request = Request::of(name)?;
    request.put(&i32::from(mtu).to_ne_bytes());
    control(socket.as_fd(), libc::SIOCSIFMTU, &mut request)
}

/// Sets how many packets may wait at an interface for the device to take them; more are dropped.
///
/// # Errors
/// As [`up`].
pub fn set_queue_len(name: &str, packets: u16) -> io::Result<()> {
    let socket = socket(libc::AF_INET)?;
    let mut request = Request::of(name)?;
    request.put(&i32::from(packets).to_ne_bytes());
    control(socket.as_fd(), libc::SIOCSIFTXQLEN, &mut request)
}

/// Gives an interface an address and a route to its network.
///
/// # Errors
/// As [`up`], and `InvalidInput` when the prefix is too long.
pub fn set_address(name: &str, address: Address) -> io::Result<()> {
    let wrong = || io::Error::from(io::ErrorKind::InvalidInput);
    match address.ip {
        IpAddr::V4(ip) => {
            let host_bits = 32_u32.checked_sub(address.prefix_len.into()).ok_or_else(wrong)?;
            let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
            let socket = socket(libc::AF_INET)?;
            let mut request = Request::of(name)?;
            request.put(&internet(ip.octets()));
            control(socket.as_fd(), libc::SIOCSIFADDR, &mut request)?;
            request.put(&internet(mask.to_be_bytes()));
            control(socket.as_fd(), libc::SIOCSIFNETMASK, &mut request)
        }
        IpAddr::V6(_) if address.prefix_len > 128 => Err(wrong()),
        IpAddr::V6(ip) => set_address_v6(name, ip, address.prefix_len),
    }
}

fn set_address_v6(name: &str, ip: Ipv6Addr, prefix_len: u8) -> io::Result<()> {
    let socket = socket(libc::AF_INET6)?;
    let mut request = Request::of(name)?;
    control(socket.as_fd(), libc::SIOCGIFINDEX, &mut request)?;
    let wanted = libc::in6_ifreq {
        ifr6_addr: libc::in6_addr { s6_addr: ip.octets() },
        ifr6_prefixlen: prefix_len.into(),
        ifr6_ifindex: request.int(),
    };
    // SAFETY: the descriptor is open; `wanted` is the structure that an IPv6 socket takes with
    // this request, and outlives the call, which only reads it.
    let result =
        unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFADDR as _, &raw const wanted) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Keeps the kernel from giving an interface an IPv6 address of its own accord, and so from sending
/// packets that nobody asked for. To be called before it is up.
///
/// # Errors
/// When the setting cannot be written; a host without IPv6 has none, and that is no error.
pub fn set_no_link_local(name: &str) -> io::Result<()> {
    Request::of(name)?;
    match std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode"), "1") {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The number of the interface of this name.
///
/// # Errors
/// `ENODEV` when there is none here, `InvalidInput` when it cannot be a name.
pub fn index(name: &str) -> io::Result<u32> {
    let mut request = Request::of(name)?;
    control(socket(libc::AF_INET)?.as_fd(), libc::SIOCGIFINDEX, &mut request)?;
    u32::try_from(request.int()).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The name of the interface of this number.
///
/// # Errors
/// `ENXIO` when there is none here.
pub fn name(index: u32) -> io::Result<String> {
    let mut name = [0_u8; libc::IF_NAMESIZE];
    // SAFETY: there is room for the longest name and its end, which is what the call writes.
    let found = unsafe { libc::if_indextoname(index, name.as_mut_ptr().cast()) };
    if found.is_null() {
        return Err(io::Error::last_os_error());
    }
    let text = CStr::from_bytes_until_nul(&name).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok(text.to_string_lossy().into_owned())
}

/// The longest packet in bytes that an interface takes.
///
/// # Errors
/// As [`index`].
pub fn mtu(name: &str) -> io::Result<usize> {
    let mut request = Request::of(name)?;
    control(socket(libc::AF_INET)?.as_fd(), libc::SIOCGIFMTU, &mut request)?;
    usize::try_from(request.int()).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The address of an Ethernet interface; `None` when it is of another kind.
///
/// # Errors
/// As [`index`].
pub fn ethernet_address(name: &str) -> io::Result<Option<[u8; 6]>> {
    let mut request = Request::of(name)?;
    control(socket(libc::AF_INET)?.as_fd(), libc::SIOCGIFHWADDR, &mut request)?;
    // A `struct sockaddr`: the kind of hardware, then its address.
    let [_, _, address @ ..] = request.value;
    let is_ethernet = request.short().cast_unsigned() == libc::ARPHRD_ETHER;
    Ok(address.first_chunk().copied().filter(|_| is_ethernet))
}

/// Whether what an interface carries begins with an Ethernet header: that of Ethernet does, and of
/// loopback.
///
/// # Errors
/// As [`index`].
pub fn has_ethernet_header(name: &str) -> io::Result<bool> {
    let mut request = Request::of(name)?;
    control(socket(libc::AF_INET)?.as_fd(), libc::SIOCGIFHWADDR, &mut request)?;
    let kind = request.short().cast_unsigned();
    Ok(matches!(kind, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK))
}

/// The number of the interface that has an address; `None` when none of this namespace has it.
///
/// # Errors
/// What the system says when it cannot list them.
pub fn index_of(ip: IpAddr) -> io::Result<Option<u32>> {
    let mut first = std::ptr::null_mut();
    // SAFETY: the pointer is to a pointer that the call sets; what it sets is freed below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found = None;
    let mut next: *const libc::ifaddrs = first;
    // SAFETY: each element of the list is valid until `freeifaddrs`, and names the next or null.
    while let Some(entry) = unsafe { next.as_ref() } {
        if ip_of(entry) == Some(ip) {
            // SAFETY: the name is a text that ends with a zero and is valid as long as the list is.
            let index = unsafe { libc::if_nametoindex(entry.ifa_name) };
            found = found.or((index != 0).then_some(index));
        }
        next = entry.ifa_next;
    }
    // SAFETY: `first` is what `getifaddrs` gave, and nothing of the list is used any more.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// The address of an entry, if it is of the internet.
fn ip_of(entry: &libc::ifaddrs) -> Option<IpAddr> {
    // SAFETY: the address of an entry is null or valid as long as the list is, and as long as the
    // structure of its family.
    unsafe {
        let family = i32::from(entry.ifa_addr.as_ref()?.sa_family);
        match family {
            libc::AF_INET => {
                let address = entry.ifa_addr.cast::<libc::sockaddr_in>().read_unaligned();
                Some(IpAddr::from(address.sin_addr.s_addr.to_ne_bytes()))
            }
            libc::AF_INET6 => {
                let address = entry.ifa_addr.cast::<libc::sockaddr_in6>().read_unaligned();
                Some(IpAddr::from(address.sin6_addr.s6_addr))
            }
            _ => None,
        }
    }
}

fn socket(family: i32) -> io::Result<OwnedFd> {
    // SAFETY: socket takes numbers and returns a new descriptor or -1.
    owned(unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })
}

/// A socket address of IPv4 without a port.
fn internet(octets: [u8; 4]) -> [u8; 8] {
    let [a, b, c, d] = octets;
    let [f, g] = u16::try_from(libc::AF_INET).unwrap_or(2).to_ne_bytes();
    [f, g, 0, 0, a, b, c, d]
}

/// A `struct ifreq`.
#[repr(C, align(8))]
pub(crate) struct Request {
    name: [u8; NAME_LEN_MAX + 1],
    value: [u8; 24],
}

impl Request {
    /// A request about the interface of this name.
    pub(crate) fn of(name: &str) -> io::Result<Self> {
        let is_name = !name.is_empty()
            && name.len() <= NAME_LEN_MAX
            && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/' && byte != b':')
            && !matches!(name, "." | "..");
        if !is_name {
            let text = format!("{name:?} is no name of an interface: 1 to 15 letters and digits");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut request = Self { name: [0; NAME_LEN_MAX + 1], value: [0; 24] };
        request.name.iter_mut().zip(name.bytes()).for_each(|(to, from)| *to = from);
        Ok(request)
    }

    /// Writes what is asked for.
    pub(crate) fn put(&mut self, bytes: &[u8]) {
        self.value = [0; 24];
        self.value.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
    }

    /// The name, which the kernel may have completed.
    pub(crate) fn name(&self) -> String {
        let bytes = self.name.iter().copied().take_while(|byte| *byte != 0);
        String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
    }

    fn short(&self) -> i16 {
        i16::from_ne_bytes([self.value[0], self.value[1]])
    }

    fn int(&self) -> i32 {
        i32::from_ne_bytes([self.value[0], self.value[1], self.value[2], self.value[3]])
    }
}

/// An ioctl that takes a `struct ifreq`. The numbers of these requests have another type in other C
/// libraries.
#[allow(clippy::unnecessary_cast)]
pub(crate) fn control(
    fd: BorrowedFd<'_>,
    number: libc::c_ulong,
    request: &mut Request,
) -> io::Result<()> {
    let pointer: *mut c_void = std::ptr::from_mut(request).cast();
    // SAFETY: the descriptor is borrowed, so it is open; the pointer is to a request, which is as
    // long as the kernel's and exclusively borrowed for the call; any bytes are a valid request.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), number as _, pointer) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_interface_has_are_refused() {
        for name in ["", "a/b", "a:1", "sixteen-letters-", "a b", "..", "é"] {
            assert!(Request::of(name).is_err(), "{name:?}");
        }
        let request = Request::of("fifteen-letters").unwrap();
        assert_eq!(request.name(), "fifteen-letters");
        assert!(size_of::<Request>() >= size_of::<libc::ifreq>());
    }

    #[test]
    fn an_interface_is_found_by_its_address() {
        let loopback = index_of(IpAddr::from([127, 0, 0, 1])).unwrap();
        assert_eq!(loopback, Some(1), "the kernel makes it first");
        assert_eq!(index_of(IpAddr::from([203, 0, 113, 7])).unwrap(), None);
        assert_eq!(index_of(IpAddr::V6(Ipv6Addr::UNSPECIFIED)).unwrap(), None);
    }

    #[test]
    fn loopback_has_a_number_and_an_mtu_and_is_no_ethernet() {
        assert_eq!((index("lo").unwrap(), ethernet_address("lo").unwrap()), (1, None));
        assert!(mtu("lo").unwrap() >= 1_280 && has_ethernet_header("lo").unwrap());
    }

    #[test]
    fn what_there_is_not_is_an_error() {
        assert!(index("no-such-device").is_err() && mtu("no-such-device").is_err());
        assert!(ethernet_address("no-such-device").is_err() && index("a/b").is_err());
        assert!(up("no-such-device").is_err());
        assert!(set_mtu("no-such-device", 1_500).is_err());
        assert!(set_queue_len("no-such-device", 500).is_err());
        let address = Address { ip: [10, 0, 0, 1].into(), prefix_len: 33 };
        let error = set_address("no-such-device", address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
}
