//! What a person is told when contact with a peer is lost and when it is back, and when the path to
//! it takes longer or shorter datagrams.

use dacapo::{Code, Error};
use std::time::Duration;

/// Contact is lost, and the session waits.
pub fn lost(with: &str) -> String {
    format!("contact with {with} is lost: waiting for it (Ctrl-C ends the session)")
}

/// Contact is back.
pub fn restored(with: &str, after: Duration) -> String {
    format!("contact with {with} is back after {:.1} s", after.as_secs_f64())
}

/// The path takes longer or shorter datagrams than before.
pub fn mtu_changed(with: &str, from: usize, to: usize) -> String {
    format!("the path to {with} takes datagrams of {to} bytes now (before: {from})")
}

/// The path does not carry what flows send that yield to nobody, or does again.
pub fn held(with: &str, loss_ppm: u32, rate_bps: Option<u64>) -> String {
    format!("the path to {with} {}", held_path(loss_ppm, rate_bps))
}

/// The same behind what names the path.
pub fn held_path(loss_ppm: u32, rate_bps: Option<u64>) -> String {
    let Some(rate_bps) = rate_bps else { return "carries again what is sent".to_owned() };
    let (lost, rate) = (f64::from(loss_ppm) / 1e4, rate_bps as f64);
    let rate = if rate < 1e6 {
        format!("{:.0} kbit/s", rate / 1e3)
    } else {
        format!("{:.1} Mbit/s", rate / 1e6)
    };
    format!("lost {lost:.0} % in ten seconds: held to {rate} for now")
}

/// A flow is carried by another transport than was agreed.
pub fn stood_in(flow: &str, transport: &str, reason: &str) -> String {
    format!("{flow} goes over {transport}, because {reason}")
}

/// Whether to join again makes sense after a session that ended so.
pub fn may_join_again(error: &Error) -> bool {
    matches!(error.code, Code::PeerRestarted | Code::GivenUp | Code::ContactLost)
}
