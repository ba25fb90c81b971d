//! Addresses: as people write them, and as records carry them.
//!
//! ```text
//!   text -> Place, Uri, group of a session file -> text -> the same
//!   group of a session file -> OFFER -> the same group      bytes in an OFFER -> group -> the same
//! ```

use super::samples;
use crate::input::Input;
use crate::oracle;
use dacapo::{Address, Place, Uri};
use dacapo_qos::SessionFile;
use dacapo_wire::message::{Message, MessageKind};
use dacapo_wire::record::{HEADER_LEN, RecordError};
use dacapo_wire::session::{FlowOffer, Offer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What reading a session file takes whatever is in it, as `qos_session_file` counts it.
const FILE_BYTES: usize = 1 << 20;

/// One byte chooses: an address of a host, of a session, a group in words, a group in bytes.
pub fn address(data: &[u8]) {
    let mut input = Input(data);
    let (kind, bytes) = (input.u8() % 4, input.rest());
    let text = String::from_utf8_lossy(bytes);
    match kind {
        0 => place(&text),
        1 => uri(&text),
        2 => group(&text),
        _ => record(bytes),
    }
}

fn place(text: &str) {
    match oracle::bounded("an address", text.len(), || text.parse::<Place>()) {
        Ok(place) => {
            let at = place.addr(7);
            check_host(&at);
            let again: Place = at.to_string().parse().expect("what is printed is read");
            assert_eq!(again.addr(8), at, "{text:?} as {at}");
            let other = place.addr(9);
            let keeps_port = other.port() == at.port();
            assert!(keeps_port || (at.port(), other.port()) == (7, 9), "{text:?}: {at}, {other}");
            assert_eq!((other.ip(), scope(&other)), (at.ip(), scope(&at)));
        }
        Err(error) => {
            let said = error.to_string();
            assert!(!said.chars().any(char::is_control), "{said:?}");
        }
    }
}

/// An address of one link has its interface.
fn check_host(at: &SocketAddr) {
    if let SocketAddr::V6(at) = at {
        assert!(at.flowinfo() == 0, "{at}");
        assert!(!at.ip().is_unicast_link_local() || at.scope_id() != 0, "{at} has no interface");
    }
}

fn scope(at: &SocketAddr) -> u32 {
    match at {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(at) => at.scope_id(),
    }
}

fn uri(text: &str) {
    let Ok(uri) = oracle::bounded("an address", text.len(), || text.parse::<Uri>()) else { return };
    let again = uri.to_string().parse::<Uri>();
    assert_eq!(again.as_ref(), Ok(&uri), "{text:?}");
    if uri.scheme.is_some() {
        return of_own(&uri.host);
    }
    // Where the host is an address, the authority is one too, of the same host.
    let ip = uri.host.split_once('%').map_or(uri.host.as_str(), |(ip, _)| ip).parse::<IpAddr>();
    if let (Ok(ip), Ok(place)) = (ip, uri.authority().parse::<Place>()) {
        assert_eq!((place.addr(1).ip(), place.addr(1).port()), (ip, uri.port), "{text:?}");
    }
}

/// An address of a scheme that a transport alone knows: what is printed of it is read back.
fn of_own(text: &str) {
    let read =
        |text: &str| oracle::bounded("an address", text.len(), || Address::read("own", text));
    let address = read(text).expect("an address of a session is one");
    let printed = address.to_string();
    let rest = printed.strip_prefix("own:").expect("the scheme stands first");
    assert_eq!(read(rest), Ok(address), "{text:?}");
    assert!(address.bytes_of("own").is_some_and(|bytes| !bytes.is_empty()), "{text:?}");
}

/// A session file with this group.
fn file(group: &str) -> String {
    let quoted: String = group.chars().flat_map(char::escape_default).collect();
    // TOML has `\u{…}` otherwise, so what is escaped is no group.
    format!(
        "[session]\nname = \"a\"\n[[flow]]\nname = \"f\"\nfrom = \"creator\"\n\
         source = {{ raw = true }}\nmulticast = \"{quoted}\"\ntransport = \"udp\"\n"
    )
}

fn group_of(text: &str) -> Option<SocketAddr> {
    let file = file(text);
    let read = oracle::bounded("a session file", FILE_BYTES, || {
        SessionFile::parse_bytes(file.as_bytes(), "a.toml")
    });
    Some(read.ok()?.flows.first()?.multicast.as_ref()?.value)
}

fn group(text: &str) {
    let Some(group) = group_of(text) else { return };
    assert!(group.ip().is_multicast() && group.port() > 0, "{text:?}");
    assert_eq!(group_of(&group.to_string()), Some(group), "{text:?}");
    assert_eq!(carried(group), Some(group), "{text:?} is another one in an OFFER");
}

/// What an OFFER makes of a group.
fn carried(group: SocketAddr) -> Option<SocketAddr> {
    match read(&offer(group)) {
        Ok(Message::Offer(Offer { flows, .. })) => flows.first()?.multicast,
        other => panic!("an OFFER with {group} is read as {other:?}"),
    }
}

fn read(record: &[u8]) -> Result<Message, RecordError> {
    Message::decode(MessageKind::Offer.code(), record.get(HEADER_LEN..).unwrap_or_default())
}

fn offer(group: SocketAddr) -> Vec<u8> {
    let flow = FlowOffer { multicast: Some(group), ..samples::flow_offer() };
    let mut bytes = Vec::new();
    let offer = Message::from(Offer { title: "a".into(), flows: vec![flow], ..Offer::default() });
    offer.encode(&mut bytes).expect("a group can be carried");
    bytes
}

/// Addresses whose bytes stand nowhere else in a record.
const FOUR: Ipv4Addr = Ipv4Addr::new(239, 0xA5, 0x5A, 0xC3);
const SIX: Ipv6Addr = Ipv6Addr::new(0xFF1E, 0xA55A, 0xC33C, 0x9669, 0xA55A, 0xC33C, 0x9669, 0xA55A);

/// Puts the bytes where a group of the same length stands in a record.
fn record(bytes: &[u8]) {
    let group = SocketAddr::new(if bytes.len() >= 18 { SIX.into() } else { FOUR.into() }, 0xBEEF);
    let mut wanted = match group.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    wanted.extend(group.port().to_be_bytes());
    let mut record = offer(group);
    let at = record.windows(wanted.len()).position(|window| window == wanted);
    let Some(place) = at.and_then(|at| record.get_mut(at..at + wanted.len())) else {
        panic!("the group stands in its record")
    };
    let given = bytes.iter().copied().chain(std::iter::repeat(0));
    let given: Vec<u8> = given.take(wanted.len()).collect();
    place.copy_from_slice(&given);
    let read = oracle::bounded("an OFFER", record.len(), || read(&record));
    let is_group = given.first().is_some_and(|first| match wanted.len() {
        6 => first >> 4 == 0xE,
        _ => *first == 0xFF,
    });
    match read {
        Ok(message) => {
            assert!(is_group, "{given:?} is no group");
            let mut again = Vec::new();
            message.encode(&mut again).expect("what was read can be written");
            assert_eq!(again, record, "the same bytes");
        }
        Err(_) => assert!(!is_group, "{given:?} is a group"),
    }
}

/// Of each kind some.
pub fn address_seeds() -> Vec<Vec<u8>> {
    let places = [
        "192.0.2.7",
        "192.0.2.7:4040",
        "2001:db8::7",
        "[2001:db8::7]:4040",
        "fe80::7%lo",
        "[fe80::7%1]:4040",
        "[::ffff:10.0.0.1]",
    ];
    let sessions = [
        "dacapo://[fe80::7%lo]:9/x",
        "dacapo://192.0.2.7/movie",
        "dacapo://[::1]/a",
        "dacapo+toy-unix://a.b%2F%FF/x",
    ];
    let groups = [
        "239.1.2.3:5004",
        "232.0.0.1:1",
        "[ff15::1:2]:5004",
        "[ff3e::8000:1]:5004",
        "[ff02::1%1]:5004",
        "10.0.0.1:5",
    ];
    let of = |kind: u8, texts: &[&str]| -> Vec<Vec<u8>> {
        texts.iter().map(|text| [&[kind], text.as_bytes()].concat()).collect()
    };
    let mut seeds = [of(0, &places), of(1, &sessions), of(2, &groups)].concat();
    seeds.push([&[3, 239, 1, 2, 3], &5_004_u16.to_be_bytes()[..]].concat());
    seeds.push(vec![3, 10, 0, 0, 1, 0, 0]);
    seeds.push([&[3], &Ipv6Addr::from(0xFF15_u128 << 112).octets()[..], &[0x13, 0x8C]].concat());
    seeds
}
