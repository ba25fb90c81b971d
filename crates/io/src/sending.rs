//! [`send_past`]: sending past what the system has kept of an earlier datagram.
//!
//! ```text
//!   send -> refused, too long, no way: of this one, or of an earlier one?  -> send again: of this
//! ```
//!
//! The system tells once, to whoever calls next, what ICMP says of a datagram that has left.
//! Anybody can forge that, and it is to cost the next datagram nothing.

use dacapo_sys::udp::SendError;

/// What a socket says of a datagram that was sent before: a hint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nobody listens there.
    Refused,
    /// It was too long for the way.
    TooLong,
    /// Something else that ICMP says: no way, a filter, a protocol that is not known.
    Other,
}

impl Kept {
    /// What an error may say of an earlier datagram.
    fn of(error: &SendError) -> Option<Self> {
        match error {
            SendError::Refused => Some(Self::Refused),
            SendError::MessageTooLarge => Some(Self::TooLong),
            SendError::Unreachable => Some(Self::Other),
            // EHOSTUNREACH for a filter is EACCES; for a protocol that a host lacks ENOPROTOOPT.
            SendError::Other(error) => {
                (error.kind() != std::io::ErrorKind::InvalidInput).then_some(Self::Other)
            }
            SendError::WouldBlock | SendError::NoBuffers => None,
        }
    }
}

/// Sends; once more where that fails as an earlier datagram may have, of those kinds that `is_past`
/// names. Tells what the first try said, and what became of the datagram.
pub fn send_past<T>(
    is_past: impl FnOnce(Kept) -> bool,
    mut send: impl FnMut() -> Result<T, SendError>,
) -> (Option<Kept>, Result<T, SendError>) {
    let first = send();
    match first.as_ref().err().and_then(Kept::of) {
        Some(kept) if is_past(kept) => (Some(kept), send()),
        _ => (None, first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tries(answers: Vec<Result<u8, SendError>>) -> (usize, Option<Kept>, bool) {
        let mut answers = answers.into_iter();
        let mut count = 0;
        let (kept, sent) = send_past(
            |_| true,
            || {
                count += 1;
                answers.next().unwrap()
            },
        );
        (count, kept, sent.is_ok())
    }

    #[test]
    fn what_is_of_an_earlier_one_is_told_and_this_one_is_sent() {
        assert_eq!(tries(vec![Ok(1)]), (1, None, true));
        assert_eq!(tries(vec![Err(SendError::Refused), Ok(1)]), (2, Some(Kept::Refused), true));
        let twice = vec![Err(SendError::MessageTooLarge), Err(SendError::MessageTooLarge)];
        assert_eq!(tries(twice), (2, Some(Kept::TooLong), false));
        assert_eq!(tries(vec![Err(SendError::WouldBlock)]), (1, None, false));
        assert_eq!(tries(vec![Err(SendError::NoBuffers)]), (1, None, false));
    }

    #[test]
    fn what_is_not_asked_past_is_sent_once() {
        let (kept, sent) =
            send_past(|kept| kept != Kept::Other, || Err::<(), _>(SendError::Unreachable));
        assert!(kept.is_none() && sent.is_err());
    }
}
