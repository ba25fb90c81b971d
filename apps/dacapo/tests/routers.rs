//! Sessions through a real router: three network namespaces and two cables, and what a network does
//! of its own accord while a flow runs. Without the right to make them a test says so and ends.
//!
//! ```text
//!   near  10.79.1.2 ---- 10.79.1.1  router  10.79.2.1 ---- 10.79.2.2  far (serves)
//!         fd79:1::2 ---- fd79:1::1          fd79:2::1 ---- fd79:2::2
//! ```
//!
//! Nothing here asks how long something took.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::veth::ip;
use common::{LONG, Place, Running, movie_session, wait_until};
use dacapo_sys::netns::Namespace;
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the second cable takes after a while, in bytes of an IP packet.
const NARROW: u64 = 1_300;

static COUNT: AtomicU32 = AtomicU32::new(0);

/// The addresses of one family: near, the router's two, far.
struct Family {
    addresses: [&'static str; 4],
    prefix_len: u8,
    /// Bytes of the headers of IP and UDP.
    headers: u64,
}

const FOUR: Family = Family {
    addresses: ["10.79.1.2", "10.79.1.1", "10.79.2.1", "10.79.2.2"],
    prefix_len: 24,
    headers: 28,
};

const SIX: Family = Family {
    addresses: ["fd79:1::2", "fd79:1::1", "fd79:2::1", "fd79:2::2"],
    prefix_len: 64,
    headers: 48,
};

/// Two ends with a router between them; gone with this value.
struct Network {
    family: Family,
    near: Namespace,
    router: Namespace,
    far: Namespace,
}

impl Network {
    /// `None`, and a word, where there can be none.
    fn new(family: Family) -> Option<Self> {
        let has_ip = Command::new("ip").arg("-V").output().is_ok();
        if dacapo_sys::process::uid() != 0 || !has_ip {
            dacapo_base::skip("a router between two namespaces: this is not root, or has no `ip`");
            return None;
        }
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = |what: &str| format!("dacapo-{what}-{}-{number}", std::process::id());
        let [near, router, far] =
            ["near", "router", "far"].map(|what| Namespace::create(&name(what)));
        let network = Self { family, near: near.ok()?, router: router.unwrap(), far: far.unwrap() };
        network.join();
        Some(network)
    }

    /// Lays the cables and gives everything its address and routes.
    fn join(&self) {
        let [near, router, far] = [&self.near, &self.router, &self.far].map(Namespace::name);
        let [a, b, c, d] = self.family.addresses;
        let len = self.family.prefix_len;
        ip(&format!("link add name end netns {near} type veth peer name near netns {router}"));
        ip(&format!("link add name end netns {far} type veth peer name far netns {router}"));
        for (space, device, address) in
            [(near, "end", a), (router, "near", b), (router, "far", c), (far, "end", d)]
        {
            let nodad = if address.contains(':') { " nodad" } else { "" };
            ip(&format!("-n {space} address add {address}/{len} dev {device}{nodad}"));
            ip(&format!("-n {space} link set {device} up"));
        }
        for key in
            ["ipv4/ip_forward", "ipv6/conf/all/forwarding", "ipv6/conf/far/keep_addr_on_down"]
        {
            let path = format!("/proc/sys/net/{key}");
            self.router.run(|| std::fs::write(path, "1")).unwrap().unwrap();
        }
        ip(&format!("-n {near} route add default via {b}"));
        ip(&format!("-n {far} route add default via {c}"));
    }

    /// The router's end of the second cable takes shorter packets only.
    fn narrow(&self) {
        ip(&format!("-n {} link set far mtu {NARROW}", self.router.name()));
        ip(&format!("-n {} link set near mtu {NARROW}", self.router.name()));
    }

    /// What the router would say itself goes nowhere: no "packet too big" reaches anybody.
    fn silence(&self) {
        let six = if self.family.prefix_len == 64 { "-6 " } else { "" };
        ip(&format!("{six}-n {} rule add pref 1 iif lo blackhole", self.router.name()));
    }

    fn set_cable(&self, state: &str) {
        ip(&format!("-n {} link set far {state}", self.router.name()));
    }

    /// How the far end is written in front of a port or a path.
    fn far_address(&self) -> String {
        let far = self.family.addresses[3];
        if far.contains(':') { format!("[{far}]") } else { far.to_owned() }
    }

    /// The longest datagram of what the narrow cable takes.
    fn narrow_len(&self) -> u64 {
        NARROW - self.family.headers
    }
}

/// A movie that is played from the far end at the near end.
struct Play {
    place: Place,
    server: Running,
    player: Running,
}

impl Play {
    fn begin(network: &Network) -> Self {
        let place = Place::new();
        let args = ["testmovie", "movie.avi", "--duration", "8", "--size", "320x240"];
        place.run(&args).expect(0);
        place.write("a.toml", movie_session("movie", "movie.avi"));
        let serve =
            ["serve", "a.toml", "--listen", network.family.addresses[3], "--once", "--json"];
        let server = network.far.run(|| place.start(&serve)).unwrap();
        server.wait_for_out("listening", LONG);
        let uri = format!("dacapo://{}/movie", network.far_address());
        let play = ["play", &uri, "--save", "out", "--json"];
        let player = network.near.run(|| place.start(&play)).unwrap();
        // Something has been written: flows run.
        let runs = || {
            common::files(&place.path("out"), "avi")
                .iter()
                .any(|it| it.metadata().unwrap().len() > 0)
        };
        assert!(wait_until(LONG, || place.path("out").exists() && runs()), "nothing is played");
        Self { place, server, player }
    }

    /// What the player says at the end, and all that the server said.
    fn end(self) -> (Value, String) {
        let run = self.player.wait(LONG);
        let played: Value =
            serde_json::from_str(&run.out).unwrap_or_else(|_| panic!("{}", run.all()));
        assert_eq!(run.code, Some(0), "{}", run.all());
        let served = self.server.wait(LONG).expect(0);
        for flow in played["flows"].as_array().unwrap() {
            let count = |key: &str| flow["account"][key].as_u64().unwrap();
            let became = ["delivered", "late", "lost", "dropped", "unknown"];
            let became: u64 = became.iter().map(|it| count(&format!("units_{it}"))).sum();
            assert_eq!(count("units_sent"), became, "{flow}");
            assert!(count("units_delivered") > 0, "{flow}");
        }
        drop(self.place);
        (played, served.out)
    }
}

/// The lengths that an end was told of, in order.
fn lengths(served: &str) -> Vec<u64> {
    let events = served.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let told = events.filter(|event| event["event"] == "path_mtu_changed");
    told.map(|event| event["to_bytes"].as_u64().unwrap()).collect()
}

/// The cable gets narrow while a movie is played; the flow finds what it takes, and goes on.
fn narrows(family: Family, is_silent: bool) {
    let Some(network) = Network::new(family) else { return };
    let play = Play::begin(&network);
    if is_silent {
        network.silence();
    }
    network.narrow();
    let (played, served) = play.end();
    let lengths = lengths(&served);
    let found = lengths.last().copied().unwrap_or_else(|| panic!("no length: {served}\n{played}"));
    let most = network.narrow_len();
    // What the router says is tried first; without its word the search ends this close.
    let least = if is_silent { most - 16 } else { most };
    assert!((least..=most).contains(&found), "{lengths:?}, the cable takes {most}");
}

#[test]
fn a_router_that_says_what_it_cannot_forward_is_heard() {
    narrows(FOUR, false);
}

#[test]
fn a_router_of_ipv6_that_says_what_it_cannot_forward_is_heard() {
    narrows(SIX, false);
}

#[test]
fn a_router_that_drops_what_is_too_long_without_a_word_is_noticed() {
    narrows(FOUR, true);
}

#[test]
fn a_cable_that_is_pulled_and_put_back_interrupts_the_flow_and_does_not_end_it() {
    for family in [FOUR, SIX] {
        let Some(network) = Network::new(family) else { return };
        let play = Play::begin(&network);
        network.set_cable("down");
        play.server.wait_for_out("contact_lost", LONG);
        network.set_cable("up");
        let (played, served) = play.end();
        assert!(served.contains("contact_restored"), "{served}");
        assert!(played["contact_losses"].as_u64().unwrap() >= 1, "{played}");
    }
}
