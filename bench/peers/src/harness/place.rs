//! [`Place`]: where the two ends are: two network namespaces with a veth pair or the link emulator
//! between them, or loopback.
//!
//! ```text
//!   namespace a --- veth, MTU 1500, 10.9.0.0/24 ------------------ namespace b
//!   namespace a --- TUN -- `dacapo link` -- TUN, 10.77.0.0/24 ---- namespace b
//!   source, ping                                                   sink, echo
//! ```
//!
//! Invariants: names carry the process id, so two runs do not meet; what was made is deleted when
//! the place is dropped, and what a killed run left is deleted by the next. The routes say which
//! congestion control kernel TCP uses, ours as anybody's, so that runs on different hosts mean the
//! same; it is CUBIC, which is the faster one here.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use peers::Failure;
use serde_json::{Value, json};

use crate::facts;
use crate::process::{DIES_WITH_PARENT, Process};

const PREFIX: &str = "dpeers";
const CONGESTION_CONTROL: &str = "cubic";
const NET: &str = "10.9.0.0/24";
const NEAR: &str = "10.9.0.1";
const FAR: &str = "10.9.0.2";

/// What the emulator calls its network and its far end.
const LINK_NET: &str = "10.77.0.0/24";
const LINK_FAR: &str = "10.77.0.2";
/// How long the emulator may take to begin, and to say what it did.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which side of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Sends.
    Near,
    /// Listens.
    Far,
}

/// Where the ends are.
#[derive(Debug)]
pub struct Place {
    namespaces: Option<[String; 2]>,
    /// The emulator, where it is what is between them.
    link: Option<Process>,
}

impl Place {
    /// Both ends on loopback.
    pub fn loopback() -> Self {
        Self { namespaces: None, link: None }
    }

    /// Two namespaces with a veth pair between them.
    ///
    /// # Errors
    /// What `ip` says; nothing is left behind.
    pub fn veth() -> Result<Self, Failure> {
        let (place, [a, b]) = Self::namespaces()?;
        ip(&format!(
            "-n {a} link add veth0 mtu 1500 type veth peer name veth0 mtu 1500 netns {b}"
        ))?;
        for (name, address) in [(&a, NEAR), (&b, FAR)] {
            ip(&format!("-n {name} address add {address}/24 dev veth0"))?;
            ip(&format!("-n {name} link set veth0 up"))?;
            ip(&format!("-n {name} route replace {NET} dev veth0 congctl {CONGESTION_CONTROL}"))?;
        }
        Ok(place)
    }

    /// Two namespaces with the link emulator of `dacapo` between them; its `config` as on its
    /// command line, and the congestion control of kernel TCP.
    ///
    /// # Errors
    /// What `ip` or the emulator says; nothing is left behind.
    pub fn link(
        dacapo: &Path,
        config: &str,
        congestion_control: &str,
        folder: &Path,
    ) -> Result<Self, Failure> {
        let (mut place, [a, b]) = Self::namespaces()?;
        let (dacapo, ends) = (dacapo.to_string_lossy(), format!("{a},{b}"));
        // Whoever else is busy, packets leave in time.
        let rest = ["nice", "-n", "-10", &dacapo, "link", config, "--between", &ends, "--json"];
        let words = DIES_WITH_PARENT.iter().copied().chain(rest).map(str::to_owned);
        let mut link = Process::start(&words.collect::<Vec<_>>(), folder)?;
        link.line(PATIENCE, |line| line.contains("\"listening\""))?;
        place.link = Some(link);
        for name in [&a, &b] {
            let route = format!("{LINK_NET} dev dacapo0 congctl {congestion_control}");
            ip(&format!("-n {name} route replace {route}"))?;
        }
        Ok(place)
    }

    fn namespaces() -> Result<(Self, [String; 2]), Failure> {
        sweep();
        let id = std::process::id();
        let names = [format!("{PREFIX}-a-{id}"), format!("{PREFIX}-b-{id}")];
        // From here on dropping deletes them.
        let place = Self { namespaces: Some(names.clone()), link: None };
        for name in &names {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        Ok((place, names))
    }

    /// Ends the emulator, which says what it did.
    ///
    /// # Errors
    /// There is none, or it says nothing.
    pub fn end_link(&mut self) -> Result<Value, Failure> {
        let mut link = self.link.take().ok_or_else(|| Failure("no emulator".to_owned()))?;
        link.interrupt()?;
        let totals = link.line(PATIENCE, |line| line.contains("\"totals\""))?;
        serde_json::from_str(&totals).map_err(|error| Failure(format!("{error}: {totals}")))
    }

    /// The address that the far end listens at.
    pub fn address(&self) -> &'static str {
        match (&self.namespaces, &self.link) {
            (Some(_), Some(_)) => LINK_FAR,
            (Some(_), None) => FAR,
            (None, _) => "127.0.0.1",
        }
    }

    /// The words before a command that runs it at `end`.
    pub fn words(&self, end: End) -> Vec<String> {
        let Some([a, b]) = &self.namespaces else { return Vec::new() };
        let name = if end == End::Near { a } else { b };
        ["ip", "netns", "exec", name].map(str::to_owned).to_vec()
    }

    /// The settings of the kernel at the near end that matter to TCP.
    pub fn settings(&self) -> Value {
        let read = |words: &[&str]| {
            let mut all = self.words(End::Near);
            all.extend(words.iter().map(|&word| word.to_owned()));
            let (first, rest) = all.split_first()?;
            facts::output(first, &rest.iter().map(String::as_str).collect::<Vec<_>>())
        };
        json!({
            "routes": read(&["ip", "route"]),
            "net.ipv4.tcp_congestion_control":
                read(&["cat", "/proc/sys/net/ipv4/tcp_congestion_control"]),
            "net.ipv4.tcp_rmem": read(&["cat", "/proc/sys/net/ipv4/tcp_rmem"]),
            "net.ipv4.tcp_wmem": read(&["cat", "/proc/sys/net/ipv4/tcp_wmem"]),
        })
    }

    /// What the place is, for people.
    pub fn name(&self) -> &'static str {
        if self.is_veth() { "veth between two namespaces, MTU 1500" } else { "loopback" }
    }

    /// Whether it is what the goals are about.
    pub fn is_veth(&self) -> bool {
        self.namespaces.is_some() && self.link.is_none()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It holds both ends.
        drop(self.link.take());
        for name in self.namespaces.iter().flatten() {
            // Both may fail: the place may be half made.
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

/// Deletes namespaces of runs that are no more.
fn sweep() {
    let Ok(output) = Command::new("ip").args(["netns", "list"]).output() else { return };
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let id = name.strip_prefix(PREFIX).and_then(|rest| rest.rsplit('-').next());
        let is_number = |id: &&str| id.parse::<u32>().is_ok();
        if id.filter(is_number).is_some_and(|id| !Path::new("/proc").join(id).exists()) {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(words: &str) -> Result<(), Failure> {
    run(Command::new("ip").args(words.split(' ')))
}

fn run(command: &mut Command) -> Result<(), Failure> {
    let output = command.output().map_err(|error| Failure(format!("{command:?}: {error}")))?;
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    Err(Failure(format!("{command:?}: {}", text.trim())))
}
