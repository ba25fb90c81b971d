//! [`Uri`]: where a session is, as people write it.
//!
//! ```text
//!   dacapo://HOST[:PORT]/NAME        dacapo://[2001:db8::1]:19980/movie
//!   dacapo+SCHEME://ADDRESS/NAME     dacapo+toy-unix://my-socket/movie
//! ```
//!
//! The second is for transports whose addresses are none of IP; what it means they know.
//!
//! Invariants: the name is one that a session can have; what `Display` writes, `parse` reads back
//! to the same.
//!
//! Decoder: of text from a user or from a page.
//!
//! Source: RFC 3986, sections 3.2.2 (host) and 3.2.3 (port).

#![deny(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::arithmetic_side_effects
)]

use crate::host::PORT;
use dacapo_base::{Address, AddressError};
use dacapo_sys::interface::NAME_LEN_MAX;
use dacapo_wire::name::{self, NameError};
use std::error::Error;
use std::fmt;
use std::net::{Ipv6Addr, SocketAddr};
use std::str::FromStr;

const SCHEME: &str = "dacapo://";

/// What stands for a scheme whose transport alone knows it.
const OWN: &str = "own";

/// The longest host name (RFC 1035, section 2.3.4).
const HOST_LEN_MAX: usize = 253;

/// Where a session is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Uri {
    /// A host name or an address, an IPv6 address without brackets, and behind that a `%` and its
    /// interface when it is of one link.
    pub host: String,
    /// The port of its core; 0 where addresses have none.
    pub port: u16,
    /// The scheme of the address, of which `host` is the text, where it is none of IP.
    pub scheme: Option<String>,
    /// The name of the session.
    pub name: String,
}

impl Uri {
    /// That of a session at an address.
    pub(crate) fn at(address: Address, name: &str) -> Self {
        let text = address.to_string();
        let (host, scheme) = match (address.ip(), text.split_once(':')) {
            (Some(SocketAddr::V6(at)), _) if at.scope_id() != 0 => {
                (format!("{}%{}", at.ip(), at.scope_id()), None)
            }
            (None, Some((scheme, rest))) => (rest.to_owned(), Some(scheme.to_owned())),
            (ip, _) => (ip.map(|at| at.ip().to_string()).unwrap_or_default(), None),
        };
        Self { host, port: address.port().unwrap_or(0), scheme, name: name.to_owned() }
    }

    /// Host and port as `Catalogue::resolve` takes them, an IPv6 address in brackets; or scheme and
    /// address.
    #[must_use]
    pub fn authority(&self) -> String {
        if let Some(scheme) = &self.scheme {
            format!("{scheme}:{}", self.host)
        } else if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(scheme) = &self.scheme {
            return write!(f, "dacapo+{scheme}://{}/{}", self.host, self.name);
        }
        let authority = self.authority();
        let usual = format!(":{PORT}");
        let authority = authority.strip_suffix(&usual).unwrap_or(&authority);
        write!(f, "{SCHEME}{authority}/{}", self.name)
    }
}

impl FromStr for Uri {
    type Err = UriError;

    fn from_str(text: &str) -> Result<Self, UriError> {
        let error = |fault| UriError { text: text.chars().take(120).collect(), fault };
        parse(text).map_err(error)
    }
}

fn parse(text: &str) -> Result<Uri, UriFault> {
    let (head, rest) = text.split_once("://").ok_or(UriFault::Scheme)?;
    let (ours, own) = head.split_once('+').map_or((head, None), |(ours, own)| (ours, Some(own)));
    if !ours.eq_ignore_ascii_case("dacapo") || !own.is_none_or(is_scheme) {
        return Err(UriFault::Scheme);
    }
    let (authority, name) = rest.split_once('/').ok_or(UriFault::NoName)?;
    if name.is_empty() {
        return Err(UriFault::NoName);
    }
    let (host, port) = match own {
        None => split_authority(authority)?,
        Some(_) => match Address::read(OWN, authority) {
            Ok(_) => (authority, 0),
            Err(error) => return Err(UriFault::Address(error)),
        },
    };
    name::check(name).map_err(UriFault::Name)?;
    Ok(Uri { host: host.to_owned(), port, scheme: own.map(str::to_owned), name: name.to_owned() })
}

/// Whether it can be the name of a scheme (RFC 3986, section 3.1); whether there is one is another
/// question.
fn is_scheme(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'+');
    name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.bytes().all(is_allowed)
}

fn split_authority(authority: &str) -> Result<(&str, u16), UriFault> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(UriFault::Bracket)?;
            let (ip, interface) = host.split_once('%').unwrap_or((host, "lo"));
            if ip.parse::<Ipv6Addr>().is_err() || !is_interface(interface) {
                return Err(UriFault::Bracket);
            }
            let port = match port.strip_prefix(':') {
                None if port.is_empty() => None,
                None => return Err(UriFault::Bracket),
                port => port,
            };
            (host, port)
        }
        None if authority.matches(':').count() > 1 => return Err(UriFault::Bracket),
        None => match authority.split_once(':') {
            Some((host, port)) => (check_host(host)?, Some(port)),
            None => (check_host(authority)?, None),
        },
    };
    Ok((host, port.map_or(Ok(PORT), parse_port)?))
}

fn check_host(host: &str) -> Result<&str, UriFault> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
    let is_host = !host.is_empty() && host.len() <= HOST_LEN_MAX && host.bytes().all(is_allowed);
    if is_host { Ok(host) } else { Err(UriFault::Host) }
}

/// Whether it can be the name of an interface, or its number; whether there is one is another
/// question.
fn is_interface(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'/' | b':' | b'[');
    (1..=NAME_LEN_MAX).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn parse_port(port: &str) -> Result<u16, UriFault> {
    // A sign would be accepted by the number's own reader.
    let digits = port.bytes().all(|byte| byte.is_ascii_digit());
    let port = port.parse().ok().filter(|&port: &u16| digits && port > 0);
    port.ok_or(UriFault::Port)
}

/// What is wrong with a text that should be a [`Uri`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UriFault {
    /// It does not begin with `dacapo://`.
    Scheme,
    /// It names no session.
    NoName,
    /// The host is empty or has a character that hosts do not have.
    Host,
    /// Brackets are missing around an IPv6 address, or what stands in them is none.
    Bracket,
    /// The port is no number from 1 to 65535.
    Port,
    /// The address is none of another scheme than IP.
    Address(AddressError),
    /// The name is none.
    Name(NameError),
}

/// A text that is no [`Uri`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UriError {
    /// The text, cut.
    pub text: String,
    /// What is wrong.
    pub fault: UriFault,
}

impl fmt::Display for UriError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\": ", self.text.escape_debug())?;
        match self.fault {
            UriFault::Scheme => write!(f, "it does not begin with {SCHEME}")?,
            UriFault::NoName => write!(f, "it names no session")?,
            UriFault::Host => write!(f, "the host is empty or no host name")?,
            UriFault::Bracket => write!(f, "an IPv6 address stands in brackets, as in [::1]")?,
            UriFault::Port => write!(f, "the port is no number from 1 to 65535")?,
            UriFault::Address(error) => return write!(f, "{error}"),
            UriFault::Name(error) => return write!(f, "{error}"),
        }
        write!(f, "; expected dacapo://HOST[:PORT]/NAME, such as dacapo://localhost/movie")
    }
}

impl Error for UriError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_ports_and_names_are_read_and_written() {
        for (text, host, port, name) in [
            ("dacapo://localhost/movie", "localhost", PORT, "movie"),
            ("dacapo://a-b.example:7/x.y_z-1", "a-b.example", 7, "x.y_z-1"),
            ("dacapo://192.0.2.7/m", "192.0.2.7", PORT, "m"),
            ("dacapo://[::1]/m", "::1", PORT, "m"),
            ("dacapo://[2001:db8::1]:65535/m", "2001:db8::1", 65_535, "m"),
            ("dacapo://[fe80::1%veth0]/m", "fe80::1%veth0", PORT, "m"),
            ("dacapo://[fe80::1%br-0.7]:7/m", "fe80::1%br-0.7", 7, "m"),
            ("dacapo://[fe80::1%3]:7/m", "fe80::1%3", 7, "m"),
        ] {
            let uri: Uri = text.parse().unwrap();
            assert_eq!((uri.host.as_str(), uri.port, uri.name.as_str()), (host, port, name));
            assert_eq!(uri.to_string(), text);
        }
        for (text, scheme, host, name) in [
            ("dacapo+toy-unix://a.b_c~d-1/m", "toy-unix", "a.b_c~d-1", "m"),
            ("dacapo+atm://%00%2F%FF/movie", "atm", "%00%2F%FF", "movie"),
        ] {
            let uri: Uri = text.parse().unwrap();
            assert_eq!((uri.scheme.as_deref(), uri.host.as_str()), (Some(scheme), host));
            assert_eq!((uri.port, uri.name.as_str(), uri.to_string().as_str()), (0, name, text));
            assert_eq!(uri.authority(), format!("{scheme}:{host}"));
        }
        let uri: Uri = "DACAPO://h:19980/m".parse().unwrap();
        assert_eq!(
            (uri.to_string().as_str(), uri.authority().as_str()),
            ("dacapo://h/m", "h:19980")
        );
        assert_eq!("dacapo://[::1]/m".parse::<Uri>().unwrap().authority(), "[::1]:19980");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let fault = |text: &str| text.parse::<Uri>().unwrap_err().fault;
        for text in [
            "",
            "h/m",
            "http://h/m",
            "dacapo:/h/m",
            "däcapo://h/m",
            "dacapo+://h/m",
            "dacapo+1a://h/m",
            "dacapo+a b://h/m",
            "http+toy://h/m",
        ] {
            assert_eq!(fault(text), UriFault::Scheme, "{text}");
        }
        for text in ["dacapo://h", "dacapo://h/", "dacapo://"] {
            assert_eq!(fault(text), UriFault::NoName, "{text}");
        }
        for text in ["dacapo:///m", "dacapo://:7/m", "dacapo://h h/m", "dacapo://u@h/m"] {
            assert_eq!(fault(text), UriFault::Host, "{text}");
        }
        for text in [
            "dacapo://::1/m",
            "dacapo://[::1/m",
            "dacapo://[::1]7/m",
            "dacapo://[h]/m",
            "dacapo://[fe80::1%]/m",
            "dacapo://[fe80::1%a:b]/m",
            "dacapo://[fe80::1%a b]/m",
            "dacapo://[fe80::1%sixteen-is-toolo]/m",
            "dacapo://fe80::1%veth0/m",
        ] {
            assert_eq!(fault(text), UriFault::Bracket, "{text}");
        }
        for text in ["dacapo://h:/m", "dacapo://h:0/m", "dacapo://h:+7/m", "dacapo://[::1]:x/m"] {
            assert_eq!(fault(text), UriFault::Port, "{text}");
        }
        assert_eq!(fault("dacapo+toy:///m"), UriFault::Address(AddressError::Empty));
        assert_eq!(fault("dacapo+toy://a:7/m"), UriFault::Address(AddressError::Text));
        assert_eq!(fault("dacapo://h%eth0/m"), UriFault::Host);
        assert!(matches!(fault("dacapo://h/Movie"), UriFault::Name(_)));
        assert!(matches!(fault("dacapo://h/a/b"), UriFault::Name(_)));
        let text = "movie\n".parse::<Uri>().unwrap_err().to_string();
        assert_eq!(
            text,
            "\"movie\\n\": it does not begin with dacapo://; expected dacapo://HOST[:PORT]/NAME, \
             such as dacapo://localhost/movie"
        );
    }
}
