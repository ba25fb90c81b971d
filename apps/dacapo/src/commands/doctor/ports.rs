//! The port that is to be served at, UDP and TCP, IPv4 and IPv6: free, or held, and by whom; and
//! the ports above it, where flows over QUIC and XTP are waited for.
//!
//! ```text
//!   bind --> it works: free
//!        '-> in use --> /proc/net: at which address --> `dacapo ls` there --> dacapo, or another
//! ```
//!
//! Invariants: what was bound is released at once. Who holds a port is asked by a process of its
//! own, in a state folder of its own where this user has no identity yet: asking makes none. A port
//! of flows that is held is no failure: another is chosen then, and each flow is told.
//!
//! Source: proc_net(5) for `/proc/net/udp` and `/proc/net/udp6`, whose addresses are words in the
//! byte order of the host.

use super::finding::Finding;
use super::identity;
use crate::progress::Progress;
use dacapo::spec::PortProtocol;
use dacapo_sys::udp::{Config, Socket};
use std::fs::DirBuilder;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A family of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    V4,
    V6,
}

impl Family {
    fn name(self) -> &'static str {
        match self {
            Self::V4 => "ipv4",
            Self::V6 => "ipv6",
        }
    }

    fn any(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::UNSPECIFIED.into(),
            Self::V6 => Ipv6Addr::UNSPECIFIED.into(),
        }
    }

    fn loopback(self) -> IpAddr {
        match self {
            Self::V4 => Ipv4Addr::LOCALHOST.into(),
            Self::V6 => Ipv6Addr::LOCALHOST.into(),
        }
    }

    /// The sockets of UDP that the kernel knows.
    fn table(self) -> &'static str {
        match self {
            Self::V4 => "/proc/net/udp",
            Self::V6 => "/proc/net/udp6",
        }
    }
}

/// Who holds a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    /// A dacapo that serves so many sessions.
    Dacapo { sessions: usize },
    /// Another program, or one that does not answer.
    Other,
}

/// The findings for this port.
pub fn examine(port: u16, progress: &mut Progress) -> Vec<Finding> {
    let families = [Family::V4, Family::V6];
    let udp = families.map(|family| try_port(PortProtocol::Udp, family, port));
    let held = families.iter().zip(&udp).filter(|(_, tried)| is_held(tried));
    let holders = ask(&held.map(|(family, _)| *family).collect::<Vec<_>>(), port, progress);
    let holder = |family: Family| {
        holders.iter().find(|(known, _)| *known == family).map_or(Holder::Other, |it| it.1)
    };
    let catalogue = dacapo::catalogue();
    let ports = catalogue.transports().iter().filter_map(|spec| Some((spec.name, spec.port?)));
    let (control, flows): (Vec<_>, Vec<_>) = ports.partition(|(_, at)| at.above == 0);
    let control = families.into_iter().flat_map(|family| {
        let holder = holder(family);
        control.iter().map(move |(transport, at)| {
            judge(transport, family, port, &try_port(at.protocol, family, port), holder)
        })
    });
    let flows = families.into_iter().flat_map(|family| {
        let holder = is_held(&udp[family as usize]).then(|| holder(family));
        flows.iter().map(move |(transport, at)| {
            let tried = at.beside(port).map(|it| (it, try_port(at.protocol, family, it)));
            judge_flows(transport, family, port, tried, holder)
        })
    });
    control.chain(flows).collect()
}

/// A listener of TCP at every IPv6 address takes IPv4 as well, so there one at loopback must do.
fn try_port(protocol: PortProtocol, family: Family, port: u16) -> io::Result<()> {
    match protocol {
        PortProtocol::Udp => {
            Socket::bind(SocketAddr::new(family.any(), port), &Config::default()).map(drop)
        }
        PortProtocol::Tcp => {
            let ip = if family == Family::V4 { family.any() } else { family.loopback() };
            TcpListener::bind(SocketAddr::new(ip, port)).map(drop)
        }
    }
}

fn is_held(tried: &io::Result<()>) -> bool {
    tried.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
}

fn judge(
    protocol: &str,
    family: Family,
    port: u16,
    tried: &io::Result<()>,
    holder: Holder,
) -> Finding {
    let check = format!("{protocol}-port-{}", family.name());
    let Err(error) = tried else { return Finding::ok(check, format!("{port} is free")) };
    match error.kind() {
        io::ErrorKind::AddrInUse => held(check, protocol, port, holder),
        io::ErrorKind::PermissionDenied => Finding::fail(
            check,
            format!("{port} may not be used by this user"),
            "choose a port from 1024 on with --port",
        ),
        // Without IPv6 both the family and the address are unknown.
        _ if family == Family::V6 => Finding::info(check, format!("no IPv6 here: {error}")),
        _ => Finding::fail(check, format!("{port}: {error}"), "choose another port with --port"),
    }
}

/// Judges the port above that of control, `None` when there is none, with who holds control's.
fn judge_flows(
    transport: &str,
    family: Family,
    control: u16,
    tried: Option<(u16, io::Result<()>)>,
    holder: Option<Holder>,
) -> Finding {
    let check = format!("{transport}-port-{}", family.name());
    let Some((port, tried)) = tried else {
        let found = format!("none so far above {control}; each flow is told of one that is free");
        return Finding::info(check, found);
    };
    match tried {
        Ok(()) => Finding::ok(check, format!("{port} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => match holder {
            Some(Holder::Dacapo { .. }) => {
                Finding::ok(check, format!("{port} is held, as by the dacapo of {control}"))
            }
            _ => Finding::warn(
                check,
                format!("{port} is held; flows over {transport} come to another port each time"),
                format!(
                    "behind a firewall find who holds it with `ss -lunp sport = :{port}` and end \
                     it, or choose another port with --port"
                ),
            ),
        },
        Err(error) if family == Family::V6 => {
            Finding::info(check, format!("no IPv6 here: {error}"))
        }
        Err(error) => {
            let advice =
                format!("choose another port with --port, or do without flows over {transport}");
            Finding::warn(check, format!("{port}: {error}"), advice)
        }
    }
}

fn held(check: String, protocol: &str, port: u16, holder: Holder) -> Finding {
    match holder {
        Holder::Dacapo { sessions } => {
            let sessions = match sessions {
                1 => "1 session".to_owned(),
                count => format!("{count} sessions"),
            };
            Finding::ok(check, format!("{port} is held by a running dacapo with {sessions}"))
        }
        Holder::Other => Finding::fail(
            check,
            format!("{port} is held by another program, or by a dacapo that does not answer"),
            format!(
                "find it with `ss -l{}np sport = :{port}` and end it, or choose another port with \
                 --port",
                protocol.chars().next().unwrap_or('u')
            ),
        ),
    }
}

/// Asks who holds the port in these families, all at a time: who does not answer takes 10 s.
fn ask(families: &[Family], port: u16, progress: &mut Progress) -> Vec<(Family, Holder)> {
    if families.is_empty() {
        return Vec::new();
    }
    progress.show(&format!("asking who holds port {port} … 10 s at most"));
    let holders = match StateFolder::of_asking() {
        Ok(state) => {
            let start = |family: &Family| (*family, start(*family, port, &state));
            let asked: Vec<(Family, io::Result<Child>)> = families.iter().map(start).collect();
            asked.into_iter().map(|(family, child)| (family, answer(child))).collect()
        }
        Err(_) => Vec::new(),
    };
    progress.clear();
    holders
}

fn start(family: Family, port: u16, state: &StateFolder) -> io::Result<Child> {
    let table = std::fs::read_to_string(family.table()).unwrap_or_default();
    let bound = bound_at(&table, port).into_iter().find(|ip| !ip.is_unspecified());
    let remote = SocketAddr::new(bound.unwrap_or(family.loopback()), port);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["ls", "--json", &remote.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let StateFolder::Own(folder) = state {
        command.env("XDG_STATE_HOME", folder);
    }
    command.spawn()
}

fn answer(child: io::Result<Child>) -> Holder {
    let output = child.and_then(Child::wait_with_output);
    let listed = output.ok().filter(|output| output.status.success());
    let sessions = listed.and_then(|output| serde_json::from_slice(&output.stdout).ok());
    match sessions {
        Some(serde_json::Value::Array(sessions)) => Holder::Dacapo { sessions: sessions.len() },
        _ => Holder::Other,
    }
}

/// The state folder of the process that asks.
enum StateFolder {
    /// The user's: there is an identity.
    Users,
    /// Its own, which is removed again.
    Own(PathBuf),
}

impl StateFolder {
    fn of_asking() -> io::Result<Self> {
        if identity::key_file().is_some_and(|path| path.exists()) {
            return Ok(Self::Users);
        }
        let name = format!("dacapo-doctor-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        DirBuilder::new().mode(0o700).create(&folder)?;
        Ok(Self::Own(folder))
    }
}

impl Drop for StateFolder {
    fn drop(&mut self) {
        if let Self::Own(folder) = self {
            // What would be left behind is a key that nobody uses.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The addresses at which somebody has bound the port, out of `/proc/net/udp` or `udp6`.
fn bound_at(table: &str, port: u16) -> Vec<IpAddr> {
    let rows = table.lines().skip(1).filter_map(|row| row.split_whitespace().nth(1));
    let addresses = rows.filter_map(|local| {
        let (ip, found) = local.split_once(':')?;
        (u16::from_str_radix(found, 16).ok()? == port).then(|| ip_of(ip))?
    });
    addresses.collect()
}

/// Words of 32 bits in the byte order of the host, in hexadecimal digits.
fn ip_of(hex: &str) -> Option<IpAddr> {
    let words = (0..hex.len()).step_by(8).map(|at| {
        let word = u32::from_str_radix(hex.get(at..at.checked_add(8)?)?, 16).ok()?;
        Some(word.to_ne_bytes())
    });
    let bytes: Vec<u8> = words.collect::<Option<Vec<_>>>()?.concat();
    match <[u8; 4]>::try_from(bytes.as_slice()) {
        Ok(four) => Some(four.into()),
        Err(_) => Some(<[u8; 16]>::try_from(bytes.as_slice()).ok()?.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    const TABLE: &str = "  sl  local_address rem_address   st tx_queue rx_queue\n\
        123: 0100007F:4E0C 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0\n\
        124: 00000000:0044 00000000:0000 07 00000000:00000000 00:00000000 00000000 0 0 1 2 0\n";

    #[test]
    #[cfg(target_endian = "little")]
    fn the_addresses_of_a_port_are_read_from_the_kernels_table() {
        assert_eq!(bound_at(TABLE, 19_980), [IpAddr::from(Ipv4Addr::LOCALHOST)]);
        assert_eq!(bound_at(TABLE, 68), [IpAddr::from(Ipv4Addr::UNSPECIFIED)]);
        assert!(bound_at(TABLE, 7).is_empty());
        let six = "x\n 1: 00000000000000000000000001000000:4E0C 0:0 07\n";
        assert_eq!(bound_at(six, 19_980), [IpAddr::from(Ipv6Addr::LOCALHOST)]);
    }

    #[test]
    fn a_table_that_is_none_names_no_address() {
        for text in ["", "x", "h\n1:", "h\n1: é:4E0C", "h\n1: 0100:4E0C", "h\n1: 0:zz", "h\n1: :"]
        {
            assert!(bound_at(text, 19_980).is_empty(), "{text:?}");
        }
    }

    #[test]
    fn a_port_is_free_or_a_dacapos_or_the_advice_says_how_to_get_one() {
        let judge = |error: Option<io::ErrorKind>, family, holder| {
            judge("udp", family, 19_980, &error.map_or(Ok(()), |kind| Err(kind.into())), holder)
        };
        let free = judge(None, Family::V4, Holder::Other);
        assert_eq!(free, Finding::ok("udp-port-ipv4", "19980 is free"));
        let in_use = Some(io::ErrorKind::AddrInUse);
        let ours = judge(in_use, Family::V6, Holder::Dacapo { sessions: 2 });
        let text = "19980 is held by a running dacapo with 2 sessions";
        assert_eq!(ours, Finding::ok("udp-port-ipv6", text));
        let other = judge(in_use, Family::V4, Holder::Other);
        assert_eq!(other.state, State::Fail);
        assert!(other.advice.unwrap().contains("ss -lunp sport = :19980"));
        let denied = Some(io::ErrorKind::PermissionDenied);
        assert_eq!(judge(denied, Family::V4, Holder::Other).state, State::Fail);
        let absent = Some(io::ErrorKind::AddrNotAvailable);
        assert_eq!(judge(absent, Family::V6, Holder::Other).state, State::Info);
        assert_eq!(judge(absent, Family::V4, Holder::Other).state, State::Fail);
    }

    #[test]
    fn a_port_of_quic_that_is_held_is_a_warning_unless_a_dacapo_serves_there() {
        let judge = |error: Option<io::ErrorKind>, family, holder| {
            let tried = error.map_or(Ok(()), |kind| Err(kind.into()));
            judge_flows("quic", family, 19_980, Some((29_980, tried)), holder)
        };
        let ok = |found: &str| Finding::ok("quic-port-ipv4", found);
        assert_eq!(judge(None, Family::V4, None), ok("29980 is free"));
        let in_use = Some(io::ErrorKind::AddrInUse);
        let ours = judge(in_use, Family::V4, Some(Holder::Dacapo { sessions: 1 }));
        assert_eq!(ours, ok("29980 is held, as by the dacapo of 19980"));
        for holder in [None, Some(Holder::Other)] {
            let other = judge(in_use, Family::V4, holder);
            assert_eq!(other.state, State::Warn);
            assert!(other.advice.unwrap().contains("ss -lunp sport = :29980"));
        }
        let absent = Some(io::ErrorKind::AddrNotAvailable);
        assert_eq!(judge(absent, Family::V6, None).state, State::Info);
        assert_eq!(judge(absent, Family::V4, None).state, State::Warn);
        let none = judge_flows("quic-datagram", Family::V4, 60_000, None, None);
        assert_eq!((none.state, none.check.as_str()), (State::Info, "quic-datagram-port-ipv4"));
        assert!(none.found.contains("none so far above 60000"), "{}", none.found);
    }
}
