//! [`Teller`]: what a server prints of what happens, in words or as JSON.
//!
//! ```text
//!   listening ─┬─> serving dacapo://…        {"event":"listening", …}
//!   joined    ─┤   joined movie  …           {"event":"joined", …}
//!             ─┤     over 5 ms …: its flows
//!   contact   ─┤   waiting movie …           {"event":"contact_lost", …}
//!             ─┤   back movie … after 4.2 s  {"event":"contact_restored", …}
//!   path MTU  ─┤   path movie … 1200 bytes   {"event":"path_mtu_changed", …}
//!   held      ─┤   path movie … held to …    {"event":"path_held", …}
//!   stood in  ─┤   way movie … over tcp     {"event":"stood_in", …}
//!   left      ─┤   left movie … and ledgers  {"event":"left", …}
//!   refused   ─┘   refused: …                {"event":"refused", …}
//! ```
//!
//! Invariants: both forms say the same; an event in JSON is one line.

use crate::account::{self, Account};
use crate::contact;
use crate::describe;
use crate::output::line;
use dacapo::Address;
use dacapo::Error;
use dacapo::offer::{Direction, FlowOffer};
use dacapo::plan::Plan;
use dacapo::spec::PathKnown;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// A session that is served.
pub struct Served {
    /// Its name, by which it is joined.
    pub name: String,
    title: String,
    /// Its flows, in their order.
    pub flows: Vec<FlowOffer>,
}

impl Served {
    /// The session of a plan.
    pub fn of(plan: &Plan) -> Self {
        Self {
            name: plan.name().to_owned(),
            title: plan.title().to_owned(),
            flows: plan.offers().cloned().collect(),
        }
    }
}

/// Who has joined what.
pub struct Guest {
    /// The session's name.
    pub session: String,
    /// Where the participant is.
    pub address: Option<Address>,
    /// Who it says it is.
    pub identity: Option<String>,
}

impl Guest {
    fn who(&self) -> String {
        self.address.map_or_else(|| "?".to_owned(), |address| address.to_string())
    }
}

/// What a server prints of what happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Teller {
    /// For people.
    Words,
    /// For programs: a line per event.
    Json,
}

impl Teller {
    /// It listens, and these sessions can be joined.
    pub fn listening(
        self,
        addresses: &[SocketAddr],
        identity: &str,
        served: &[Served],
        is_port_chosen: bool,
    ) {
        let listening = Listening::of(addresses);
        match self {
            Self::Words => listening.print(identity, served, is_port_chosen),
            Self::Json => line(listening.to_json(identity, served)),
        }
    }

    /// A session has begun, over a path of which so much is known, with these flows; those that are
    /// not as they are `served` were chosen for it.
    pub fn joined(
        self,
        guest: &Guest,
        path: &PathKnown,
        flows: &[FlowOffer],
        served: &[FlowOffer],
    ) {
        let (name, who) = (&guest.session, guest.who());
        match self {
            Self::Words => {
                let identity = guest.identity.as_deref().unwrap_or("no identity");
                line(format_args!("joined {name}  {who}  {identity} (unverified)"));
                let chosen: Vec<_> = flows.iter().filter(|it| !is_among(it, served)).collect();
                if let Some(path) = describe::path(path).filter(|_| !chosen.is_empty()) {
                    line(format_args!("  over {path}:"));
                }
                chosen.into_iter().for_each(|it| line(format_args!("  {}", describe::flow(it))));
            }
            Self::Json => line(json!({
                "event": "joined",
                "session": name,
                "peer": who,
                "identity": guest.identity,
                "identity_is_verified": false,
                "path": path_json(path),
                "flows": flows.iter().map(flow_json).collect::<Vec<_>>(),
            })),
        }
    }

    /// Contact with a participant is lost; its session waits.
    pub fn contact_lost(self, guest: &Guest) {
        let (name, who) = (&guest.session, guest.who());
        match self {
            Self::Words => line(format_args!("waiting {name}  {who}  contact lost")),
            Self::Json => {
                line(json!({ "event": "contact_lost", "session": name, "peer": who }));
            }
        }
    }

    /// Contact with a participant is back.
    pub fn contact_restored(self, guest: &Guest, after: Duration) {
        let (name, who, after_s) = (&guest.session, guest.who(), after.as_secs_f64());
        match self {
            Self::Words => line(format_args!("back {name}  {who}  after {after_s:.1} s")),
            Self::Json => line(json!({
                "event": "contact_restored",
                "session": name,
                "peer": who,
                "after_s": after_s,
            })),
        }
    }

    /// The path to a participant takes longer or shorter datagrams than before.
    pub fn mtu_changed(self, guest: &Guest, from: usize, to: usize) {
        let (name, who) = (&guest.session, guest.who());
        match self {
            Self::Words => {
                line(format_args!("path {name}  {who}  datagrams of {to} bytes (before: {from})"));
            }
            Self::Json => line(json!({
                "event": "path_mtu_changed",
                "session": name,
                "peer": who,
                "from_bytes": from,
                "to_bytes": to,
            })),
        }
    }

    /// The path to a participant does not carry what flows send, or does again.
    pub fn path_held(self, guest: &Guest, loss_ppm: u32, rate_bps: Option<u64>) {
        let (name, who) = (&guest.session, guest.who());
        match self {
            Self::Words => {
                line(format_args!("path {name}  {who}  {}", contact::held_path(loss_ppm, rate_bps)))
            }
            Self::Json => line(json!({
                "event": "path_held",
                "session": name,
                "peer": who,
                "loss_ppm": loss_ppm,
                "rate_bps": rate_bps,
            })),
        }
    }

    /// A flow to a participant is carried by another transport than was agreed.
    pub fn stood_in(self, guest: &Guest, flow: &str, transport: &str, reason: &str) {
        let (name, who) = (&guest.session, guest.who());
        let text = contact::stood_in(flow, transport, reason);
        match self {
            Self::Words => line(format_args!("way {name}  {who}  {text}")),
            Self::Json => line(json!({
                "event": "stood_in",
                "session": name,
                "peer": who,
                "flow": flow,
                "transport": transport,
                "reason": reason,
            })),
        }
    }

    /// A session has ended, with these ledgers.
    pub fn left(self, guest: &Guest, error: Option<&Error>, accounts: &[Account]) {
        match self {
            Self::Words => {
                let why = error.map_or_else(String::new, |error| format!("  {error}"));
                line(format_args!("left {}  {}{why}", guest.session, guest.who()));
                account::print(accounts);
            }
            Self::Json => line(left_json(guest, error, accounts)),
        }
    }

    /// Somebody wished to join and may not.
    pub fn refused(self, error: &Error) {
        match self {
            Self::Words => line(format_args!("refused: {error}")),
            Self::Json => line(json!({ "event": "refused", "error": error.to_string() })),
        }
    }
}

fn left_json(guest: &Guest, error: Option<&Error>, accounts: &[Account]) -> Value {
    let mut accounts: Vec<&Account> = accounts.iter().collect();
    accounts.sort_by_key(|account| account.place);
    json!({
        "event": "left",
        "session": guest.session,
        "peer": guest.who(),
        "error": error.map(ToString::to_string),
        "accounts": accounts.into_iter().map(Account::to_json).collect::<Vec<_>>(),
    })
}

/// Whether a flow is one of these, in all that is chosen.
fn is_among(flow: &FlowOffer, served: &[FlowOffer]) -> bool {
    let chosen = |it: &FlowOffer| (it.transport, it.bound_bps, it.playout_ns, it.playout_min_ns);
    let is_as = |it: &FlowOffer| it.graph == flow.graph && chosen(it) == chosen(flow);
    served.iter().any(|it| it.name == flow.name && is_as(it))
}

fn path_json(path: &PathKnown) -> Value {
    let us = |time: Option<Duration>| time.map(|it| it.as_secs_f64() * 1e6);
    json!({
        "rtt_us_min": us(path.rtt_min),
        "rtt_us_variation": us(path.rtt_variation),
        "loss_ppm": path.loss_ppm,
        "burst_milli": path.burst_milli,
        "delivery_rate_bps": path.delivery_rate_bps,
        "held_bps": path.held_bps,
    })
}

/// Where a server is.
struct Listening {
    addresses: Vec<SocketAddr>,
    /// The same, as others type them.
    hosts: Vec<String>,
    only_here: bool,
}

impl Listening {
    fn of(addresses: &[SocketAddr]) -> Self {
        Self {
            addresses: addresses.to_vec(),
            hosts: addresses.iter().map(|addr| reachable_as(*addr)).collect(),
            only_here: addresses.iter().all(|addr| addr.ip().is_loopback()),
        }
    }

    /// Where programs on this host find it.
    fn ready(&self) -> Option<String> {
        let first = self.addresses.first()?;
        Some(format!("dacapo://{}/", on_this_host(*first)))
    }

    fn uri(&self, name: &str) -> String {
        let first = self.hosts.first().map(String::as_str).unwrap_or_default();
        format!("dacapo://{first}/{name}")
    }

    fn print(&self, identity: &str, served: &[Served], is_port_chosen: bool) {
        if let Some(ready) = self.ready().filter(|_| is_port_chosen) {
            line(format_args!("ready {ready}"));
        }
        for it in served {
            line(format_args!("serving {}  {}", self.uri(&it.name), it.title));
            it.flows.iter().for_each(|flow| line(format_args!("  {}", describe::flow(flow))));
        }
        let whom =
            if self.only_here { "  (this host only; --listen 0.0.0.0 for others)" } else { "" };
        line(format_args!("listening on {}{whom}", self.hosts.join(", ")));
        line(format_args!("identity {identity}  (peers see it as unverified until it is pinned)"));
    }

    fn to_json(&self, identity: &str, served: &[Served]) -> Value {
        let addresses: Vec<String> = self.addresses.iter().map(ToString::to_string).collect();
        let session = |it: &Served| {
            json!({
                "uri": self.uri(&it.name),
                "name": it.name,
                "title": it.title,
                "flows": it.flows.iter().map(flow_json).collect::<Vec<_>>(),
            })
        };
        json!({
            "event": "listening",
            "ready": self.ready(),
            "addresses": addresses,
            "hosts": self.hosts,
            "this_host_only": self.only_here,
            "identity": identity,
            "sessions": served.iter().map(session).collect::<Vec<_>>(),
        })
    }
}

fn flow_json(flow: &FlowOffer) -> Value {
    let direction = match flow.direction {
        Direction::ToParticipant => "to-participant",
        Direction::ToCreator => "to-creator",
    };
    json!({
        "name": flow.name,
        "medium": describe::medium(&flow.medium),
        "graph": describe::graph(flow),
        "bound_bps": flow.bound_bps,
        "playout_ns": flow.playout_ns,
        "playout_min_ns": flow.playout_min_ns,
        "direction": direction,
    })
}

/// The address by which programs on this host reach it.
fn on_this_host(addr: SocketAddr) -> SocketAddr {
    let mut addr = addr;
    match addr.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => addr.set_ip(Ipv4Addr::LOCALHOST.into()),
        IpAddr::V6(ip) if ip.is_unspecified() => addr.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    addr
}

/// Host and port by which others reach an address: a wildcard is no address to type.
fn reachable_as(addr: SocketAddr) -> String {
    if !addr.ip().is_unspecified() {
        return addr.to_string();
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { addr.to_string() } else { format!("{name}:{}", addr.port()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo::Code;
    use dacapo::Ledger;

    fn guest() -> Guest {
        let address = Some(Address::from(([192, 0, 2, 7], 9)));
        Guest { session: "movie".to_owned(), address, identity: None }
    }

    #[test]
    fn an_address_of_one_link_is_told_with_its_interface() {
        let listening = Listening::of(&["[fe80::1%7]:9".parse().unwrap()]);
        assert_eq!(listening.ready().as_deref(), Some("dacapo://[fe80::1%7]:9/"));
        assert_eq!(listening.uri("movie"), "dacapo://[fe80::1%7]:9/movie");
    }

    #[test]
    fn an_event_in_json_is_one_line_even_with_odd_names() {
        let served = Served {
            name: "movie".to_owned(),
            title: "two\nlines \"quoted\"".to_owned(),
            flows: vec![FlowOffer { name: "video".to_owned(), ..FlowOffer::default() }],
        };
        let listening = Listening::of(&[SocketAddr::from(([127, 0, 0, 1], 7))]);
        let json = listening.to_json("SHA256:x", &[served]);
        assert!(!json.to_string().contains('\n'), "{json}");
        assert_eq!(json["ready"], "dacapo://127.0.0.1:7/");
        assert_eq!(json["sessions"][0]["uri"], "dacapo://127.0.0.1:7/movie");
        assert_eq!(json["sessions"][0]["flows"][0]["medium"], "bytes");
        assert_eq!(json["this_host_only"], true);
    }

    #[test]
    fn who_leaves_is_told_with_the_ledgers_in_the_order_of_the_flows() {
        let account = |place, flow: &str| Account {
            place,
            flow: flow.to_owned(),
            ledger: Ledger::default(),
            hash: None,
            modules: Vec::new(),
        };
        let error = Error::new(Code::ContactLost, "nothing came");
        let json = left_json(&guest(), Some(&error), &[account(1, "b"), account(0, "a")]);
        assert_eq!((&json["peer"], &json["session"]), (&json!("192.0.2.7:9"), &json!("movie")));
        assert_eq!(json["accounts"][0]["flow"], "a");
        assert_eq!(json["accounts"][1]["closes"], true);
        assert!(json["error"].as_str().unwrap().contains("contact lost"), "{json}");
        assert_eq!(left_json(&guest(), None, &[])["error"], Value::Null);
    }

    #[test]
    fn a_flow_is_chosen_for_somebody_where_it_is_not_as_it_is_served() {
        let served = FlowOffer { name: "a".to_owned(), playout_ns: 1, ..FlowOffer::default() };
        let flow = FlowOffer { playout_ns: 2, ..served.clone() };
        assert!(is_among(&served, &[flow.clone(), served.clone()]));
        assert!(!is_among(&flow, std::slice::from_ref(&served)));
        let of_another_name = FlowOffer { name: "b".to_owned(), ..served.clone() };
        assert!(!is_among(&served, &[of_another_name]));
        // What it carries is nobody's choice.
        let labelled = FlowOffer { unit_len_max: 7, ..served.clone() };
        assert!(is_among(&labelled, &[served]));
    }

    #[test]
    fn a_wildcard_is_no_address_to_type() {
        let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 7));
        assert_eq!(on_this_host(any).to_string(), "[::1]:7");
        assert!(!reachable_as(any).starts_with("[::]") || reachable_as(any) == "[::]:7");
        assert!(!Listening::of(&[any]).only_here);
    }
}
