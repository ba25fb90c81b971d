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
//! same.

use super::machine;
use super::process::{DIES_WITH_PARENT, Process};
use super::stop::Stop;
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const PREFIX: &str = "dceval";
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
#[derive(Debug, Default)]
pub struct Place {
    namespaces: Option<[String; 2]>,
    /// The emulator, where it is what is between them.
    link: Option<Process>,
}

impl Place {
    /// Two namespaces with a veth pair between them, kernel TCP with this congestion control.
    ///
    /// # Errors
    /// What `ip` says; nothing is left behind.
    pub fn veth(congestion_control: &str) -> Result<Self, String> {
        let (place, [a, b]) = Self::namespaces()?;
        ip(&format!(
            "-n {a} link add veth0 mtu 1500 type veth peer name veth0 mtu 1500 netns {b}"
        ))?;
        for (name, address) in [(&a, NEAR), (&b, FAR)] {
            ip(&format!("-n {name} address add {address}/24 dev veth0"))?;
            ip(&format!("-n {name} link set veth0 up"))?;
            ip(&format!("-n {name} route replace {NET} dev veth0 congctl {congestion_control}"))?;
        }
        Ok(place)
    }

    /// Two namespaces with the link emulator of `dacapo` between them; its `config` as on its
    /// command line, that of the way back where it is another, and the congestion control of kernel
    /// TCP.
    ///
    /// # Errors
    /// What `ip` or the emulator says; nothing is left behind.
    pub fn link(
        dacapo: &Path,
        (config, back): (&str, Option<&str>),
        congestion_control: &str,
        stop: &Stop,
    ) -> Result<Self, String> {
        let (mut place, [a, b]) = Self::namespaces()?;
        let (dacapo, ends) = (dacapo.to_string_lossy(), format!("{a},{b}"));
        // Whoever else is busy, packets leave in time.
        let rest = ["nice", "-n", "-10", &dacapo, "link", config, "--between", &ends, "--json"];
        let back = back.into_iter().flat_map(|back| ["--back", back]);
        let words = DIES_WITH_PARENT.iter().copied().chain(rest).chain(back).map(str::to_owned);
        let mut link = Process::start(&words.collect::<Vec<_>>(), Path::new("/"), stop)?;
        link.line(PATIENCE, |line| line.contains("\"listening\""))?;
        place.link = Some(link);
        for name in [&a, &b] {
            let route = format!("{LINK_NET} dev dacapo0 congctl {congestion_control}");
            ip(&format!("-n {name} route replace {route}"))?;
        }
        Ok(place)
    }

    fn namespaces() -> Result<(Self, [String; 2]), String> {
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
    pub fn end_link(&mut self) -> Result<Value, String> {
        let mut link = self.link.take().ok_or("no emulator")?;
        link.interrupt()?;
        let totals = link.line(PATIENCE, |line| line.contains("\"totals\""))?;
        serde_json::from_str(&totals).map_err(|error| format!("{error}: {totals}"))
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

    /// Bytes that went over the wire so far, both ways, as the near end's interface counts them;
    /// `None` on loopback.
    pub fn wire_bytes(&self) -> Option<u64> {
        let mut words = self.words(End::Near);
        words.extend(["cat", "/proc/net/dev"].map(str::to_owned));
        let (first, rest) = words.split_first().filter(|_| self.namespaces.is_some())?;
        let text = machine::output(first, &rest.iter().map(String::as_str).collect::<Vec<_>>())?;
        wire_bytes_of(&text)
    }
}

/// The sum over all interfaces but loopback of what `/proc/net/dev` says.
fn wire_bytes_of(text: &str) -> Option<u64> {
    let rows = text.lines().filter_map(|line| line.split_once(':'));
    let mut sum = None;
    for (_, counts) in rows.filter(|(name, _)| name.trim() != "lo") {
        let counts: Vec<u64> = counts.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        let (received, sent) = (counts.first()?, counts.get(8)?);
        sum = Some(sum.unwrap_or(0) + received + sent);
    }
    sum
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
    let list = machine::output("ip", &["netns", "list"]).unwrap_or_default();
    for line in list.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let id = name.strip_prefix(PREFIX).and_then(|rest| rest.rsplit('-').next());
        if id.is_some_and(machine::is_gone) {
            let _ = ip(&format!("netns delete {name}"));
        }
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| format!("ip {words}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {words}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_on_the_wire_are_those_of_all_interfaces_but_loopback() {
        let text = "Inter-|   Receive\n face |bytes\n    lo: 99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n \
                    veth0: \
                    1000 10 0 0 0 0 0 0 234 2 0 0 0 0 0 0\n";
        assert_eq!(wire_bytes_of(text), Some(1_234));
        assert_eq!(wire_bytes_of("    lo: 99 1 0 0 0 0 0 0 99 1\n"), None);
    }

    #[test]
    fn on_this_host_a_command_needs_no_words_before_it() {
        let here = Place::default();
        assert!(here.words(End::Far).is_empty() && here.wire_bytes().is_none());
        assert_eq!(here.address(), "127.0.0.1");
    }
}
