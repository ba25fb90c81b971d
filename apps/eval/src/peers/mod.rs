//! The programs that dacapo is measured beside, a file each, and how one is written.
//!
//! ```text
//!   Peer::pair(order, rig)      the commands of both ends
//!   Peer::sample(order, reports)  figures of what they said
//! ```
//!
//! Most are programs of `eval/peers` that speak one command line ([`Listed`]); one that people use
//! as it is, such as iperf3, has words of its own.

mod broadcast;
mod dacapo;
mod film;
mod iperf3;
mod listed;
mod setup;
mod together;
mod xtp;

pub use self::dacapo::{Dacapo, Which};
pub use broadcast::{Broadcast, By};
pub use iperf3::Iperf3;
pub use listed::Listed;
pub use setup::SetUp;
pub use together::{Several, several, together};
pub use xtp::Xtp;

use crate::experiment::Sample;
use crate::rig::{Pair, Reports, Rig};

/// What the others do before their windows open, so that it lasts as long everywhere.
pub const WARM_UP_S: f64 = 0.3;

/// System calls are said for each message where there were so many.
const MESSAGES_MIN: f64 = 2_000.0;

/// What a row measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// How much goes through in one direction.
    Bulk,
    /// How long a message takes there and back.
    Latency,
    /// The same, with a connection for each.
    SetUp,
    /// The same, with a process for each.
    Start,
}

/// How an end waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Asleep until the kernel wakes it.
    Block,
    /// Looking again and again.
    Spin,
}

impl Wait {
    /// The word for it on every command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::Spin => "spin",
        }
    }
}

/// What a peer is asked to do.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// What is measured.
    pub measure: Measure,
    /// Bytes of a message.
    pub size: usize,
    /// How both ends wait.
    pub wait: Wait,
    /// Whether nothing may be lost; otherwise the share that was is a figure.
    pub is_reliable: bool,
}

/// A program with two ends.
pub trait Peer: Sync {
    /// Why it cannot run here, if it cannot, and what to do.
    fn missing(&self, rig: &Rig) -> Option<String>;

    /// Which version it is.
    fn version(&self, rig: &Rig) -> Option<String>;

    /// Makes what both ends need, where it is not there yet.
    ///
    /// # Errors
    /// Why it cannot.
    fn prepare(&self, _rig: &Rig) -> Result<(), String> {
        Ok(())
    }

    /// Both commands; the far end listens at `address` with its port.
    fn pair(&self, order: &Order, address: &str, rig: &Rig) -> Pair;

    /// What the ends reported comes to.
    ///
    /// # Errors
    /// A figure is missing: the program has changed what it prints.
    fn sample(&self, order: &Order, reports: &Reports, rig: &Rig) -> Result<Sample, String>;
}

/// Runs a peer once.
///
/// # Errors
/// It is missing, crashed, hung or printed rubbish.
pub fn run(peer: &dyn Peer, order: &Order, rig: &mut Rig) -> Result<Sample, String> {
    peer.prepare(rig)?;
    let address = format!("{}:{}", rig.place.address(), rig.next_port());
    let reports = rig.pair(&peer.pair(order, &address, rig))?;
    let sample = peer.sample(order, &reports, rig)?;
    let rate = sample.figures.get("gbit_per_s").map(|gbit| gbit * 1e9 / 8.0);
    let messages = sample.figures.get("messages").copied();
    let mut sample = reports.beside(sample, rate);
    if let Some(cost) = sample.figures.get("cpu_s_per_gb").copied() {
        let each = cost * order.size as f64 * 1e-3;
        sample.figures.entry("cpu_us_per_unit".to_owned()).or_insert(each);
    }
    let wire_mib = sample.figures.get("wire_mib").copied();
    let calls_of = if messages.is_some() { "calls_per_message" } else { "calls_per_mib" };
    // How programs begin and end is in it, and would be most of what few messages take.
    let each_call = messages.map_or(wire_mib, |it| Some(it).filter(|it| *it >= MESSAGES_MIN));
    for (name, count, each) in
        [("switches_per_message", "switches", messages), (calls_of, "calls", each_call)]
    {
        let count = sample.figures.get(count).copied();
        if let Some((count, each)) = count.zip(each.filter(|each| *each > 0.0)) {
            sample = sample.with(name, count / each);
        }
    }
    Ok(sample)
}

/// Words of a command line.
pub fn words<'a>(words: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}
