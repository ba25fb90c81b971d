//! [`Cable`]: two network namespaces with a pair of Ethernet interfaces between them.
//!
//! ```text
//!   near  10.82.0.1/24  v ------------ v  10.82.0.2/24, 10.82.0.3/24  far
//! ```
//!
//! Invariant: both namespaces, and so the interfaces, are gone with the value and what was made in
//! them.
//!
//! Source: veth(4), `ip-link(8)`.

use dacapo_sys::netns::Namespace;
use dacapo_sys::process;
use std::process::Command;
use std::time::Duration;

/// The name of the interface at each end.
pub const INTERFACE: &str = "v";
/// How often is looked whether both ends are up, a few milliseconds apart.
const LOOKS_MAX: u32 = 1_000;
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// The namespaces: near and far.
#[derive(Debug)]
pub struct Cable([Namespace; 2]);

impl Cable {
    /// A new one; or why there can be none, and what to do.
    pub fn new() -> Result<Self, String> {
        if process::uid() != 0 {
            let text = "a cable between two network namespaces, and frames of Ethernet, need root \
                        (CAP_NET_ADMIN, CAP_NET_RAW): use sudo; --over udp needs no rights";
            return Err(text.to_owned());
        }
        let make = |end: &str| {
            let name = format!("dacapo-bench-{}-{end}", std::process::id());
            let made = Namespace::create(&name);
            made.map_err(|error| format!("the network namespace {name}: {error}"))
        };
        let cable = Self([make("near")?, make("far")?]);
        cable.plug()?;
        Ok(cable)
    }

    fn plug(&self) -> Result<(), String> {
        let [near, far] = self.0.each_ref().map(Namespace::name);
        let pair = format!("link add {INTERFACE} type veth peer name {INTERFACE} netns {far}");
        ip(near, &pair)?;
        for (name, addresses) in [(near, 1..=1), (far, 2..=3)] {
            for last in addresses {
                ip(name, &format!("address add 10.82.0.{last}/24 dev {INTERFACE}"))?;
            }
            ip(name, &format!("link set {INTERFACE} up"))?;
        }
        // What is sent before the kernel has noticed the other end is dropped.
        for name in [near, far] {
            let mut looks = 0;
            while !ip(name, &format!("link show {INTERFACE}"))?.contains("state UP") {
                looks += 1;
                if looks > LOOKS_MAX {
                    return Err(format!("the interface {INTERFACE} of {name} does not come up"));
                }
                std::thread::sleep(LOOK_EVERY);
            }
        }
        Ok(())
    }

    /// Does something in the namespace of an end: 0 is near, all others are far.
    pub fn at<T: Send>(&self, end: usize, work: impl FnOnce() -> T + Send) -> Result<T, String> {
        let [near, far] = &self.0;
        let namespace = if end == 0 { near } else { far };
        let done = namespace.run(work);
        done.map_err(|error| format!("the network namespace {}: {error}", namespace.name()))
    }
}

/// Runs `ip` in a namespace; what it prints.
fn ip(namespace: &str, words: &str) -> Result<String, String> {
    let run = Command::new("ip").args(["-n", namespace]).args(words.split(' ')).output();
    let run = run.map_err(|error| {
        format!("the program `ip` cannot be run: {error}; install iproute2, or use --over udp")
    })?;
    if !run.status.success() {
        let said = String::from_utf8_lossy(&run.stderr);
        return Err(format!("ip -n {namespace} {words}: {}", said.trim()));
    }
    Ok(String::from_utf8_lossy(&run.stdout).into_owned())
}
