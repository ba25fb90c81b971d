//! [`Answers`]: packets of no context, to who is unknown here or no more.
//!
//! Invariant: at most [`ANSWERS_MAX`] wait; of more the newest is dropped: a peer that lacks it
//! speaks again, and is answered then.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// The most answers that wait.
const ANSWERS_MAX: usize = 256;

/// Packets that wait, with where they go.
#[derive(Debug, Default)]
pub struct Answers(VecDeque<(SocketAddr, Vec<u8>)>);

impl Answers {
    /// One more, if there may be.
    pub fn push(&mut self, to: SocketAddr, packet: Vec<u8>) {
        if self.0.len() < ANSWERS_MAX {
            self.0.push_back((to, packet));
        }
    }

    /// Appends the oldest to `into`, and gives where it goes.
    pub fn poll(&mut self, into: &mut Vec<u8>) -> Option<SocketAddr> {
        let (to, packet) = self.0.pop_front()?;
        into.extend_from_slice(&packet);
        Some(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first_and_of_too_many_the_newest_is_dropped() {
        let to = |port: usize| SocketAddr::from(([192, 0, 2, 1], port as u16));
        let mut answers = Answers::default();
        (0..ANSWERS_MAX + 10).for_each(|port| answers.push(to(port), vec![port as u8]));
        let mut into = vec![9];
        assert_eq!((answers.poll(&mut into), &into[..]), (Some(to(0)), &[9, 0][..]));
        let rest = std::iter::from_fn(|| answers.poll(&mut into));
        assert!(rest.eq((1..ANSWERS_MAX).map(to)));
    }
}
