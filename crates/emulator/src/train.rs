//! `Train`: datagrams that leave together for one receiver go out in one call.
//!
//! ```text
//!   push(to, 1200) push(to, 1200) push(to, 700) | push(other, …)
//!   └──────────── one send with segments ─────┘
//! ```
//!
//! Invariant: datagrams leave in the order in which they came.

use dacapo_base::Ecn;
use dacapo_sys::udp::{SEGMENTS_MAX, SendError, Socket, TRAIN_BYTES_MAX};
use std::net::SocketAddr;

/// So often a datagram is sent again after the answer to an earlier one was read instead.
const ANSWERS_MAX: usize = 3;

/// Where datagrams go: the token of a client, and its side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// The client.
    pub token: u64,
    /// To the client; else to the server through the client's socket.
    pub is_back: bool,
    /// The congestion mark, which all of a train share.
    pub ecn: Ecn,
}

/// Datagrams of one length but for the last, to one target.
#[derive(Debug, Default)]
pub(crate) struct Train {
    target: Option<Target>,
    bytes: Vec<u8>,
    segment_len: usize,
    count: usize,
    /// The last one was shorter: nothing may follow.
    is_closed: bool,
}

impl Train {
    /// Adds a datagram; false when it must be sent on another train, after this one.
    pub fn push(&mut self, target: Target, datagram: &[u8]) -> bool {
        let len = datagram.len();
        if self.target.is_none() {
            self.target = Some(target);
            (self.segment_len, self.count, self.is_closed) = (len, 1, len == 0);
            self.bytes.extend_from_slice(datagram);
            return true;
        }
        let fits = self.target == Some(target)
            && !self.is_closed
            && (1..=self.segment_len).contains(&len)
            && self.count < SEGMENTS_MAX
            && self.bytes.len() + len <= TRAIN_BYTES_MAX;
        if fits {
            self.bytes.extend_from_slice(datagram);
            self.count += 1;
            self.is_closed = len < self.segment_len;
        }
        fits
    }

    /// Where it goes; nothing when it is empty.
    pub fn target(&self) -> Option<Target> {
        self.target
    }

    /// Datagrams in it.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Forgets what is in it.
    pub fn clear(&mut self) {
        self.bytes.clear();
        (self.target, self.count) = (None, 0);
    }

    /// Sends it, and is empty; returns how many datagrams the socket did not take.
    pub fn send(&mut self, socket: &mut Socket, to: Option<SocketAddr>) -> u64 {
        let ecn = self.target.map_or(Ecn::NotEct, |target| target.ecn);
        let segment = u16::try_from(self.segment_len).ok().filter(|len| *len > 0);
        let (mut rest, mut answers) = (self.bytes.as_slice(), 0);
        let unsent = loop {
            match socket.send(to, rest, segment, ecn) {
                Ok(sent) => rest = rest.get(sent.bytes..).unwrap_or_default(),
                // It was an answer to an earlier datagram; this one has not been tried.
                Err(SendError::Refused) if answers < ANSWERS_MAX => {
                    answers += 1;
                    continue;
                }
                Err(_) => break rest.len().div_ceil(self.segment_len.max(1)).max(1),
            }
            if rest.is_empty() {
                break 0;
            }
        };
        self.clear();
        unsent as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target { token: 1, is_back: false, ecn: Ecn::NotEct };

    fn train(lens: &[usize]) -> Train {
        let mut train = Train::default();
        for &len in lens {
            assert!(train.push(TARGET, &vec![0; len]), "{len}");
        }
        train
    }

    #[test]
    fn a_train_ends_with_a_shorter_datagram() {
        let mut train = train(&[100, 100, 40]);
        assert!(!train.push(TARGET, &[0; 40]));
        assert_eq!(train.count(), 3);
        train.clear();
        assert!(train.push(TARGET, &[0; 40]));
    }

    #[test]
    fn what_goes_elsewhere_is_longer_or_empty_is_another_train() {
        let mut train = train(&[100]);
        for other in [
            Target { token: 2, ..TARGET },
            Target { is_back: true, ..TARGET },
            Target { ecn: Ecn::Ce, ..TARGET },
        ] {
            assert!(!train.push(other, &[0; 100]), "{other:?}");
        }
        assert!(!train.push(TARGET, &[0; 101]));
        assert!(!train.push(TARGET, &[]));
        train.clear();
        assert!(train.push(TARGET, &[]) && !train.push(TARGET, &[]));
    }

    #[test]
    fn a_train_has_a_bound_in_datagrams_and_bytes() {
        assert!(!train(&[10; SEGMENTS_MAX]).push(TARGET, &[0; 10]));
        assert!(!train(&[6_500; 10]).push(TARGET, &[0; 6_500]));
    }
}
