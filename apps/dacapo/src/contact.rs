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

/// A flow is carried by another transport than was agreed.
pub fn stood_in(flow: &str, transport: &str, reason: &str) -> String {
    format!("{flow} goes over {transport}, because {reason}")
}

/// Whether to join again makes sense after a session that ended so.
pub fn may_join_again(error: &Error) -> bool {
    matches!(error.code, Code::PeerRestarted | Code::GivenUp | Code::ContactLost)
}
