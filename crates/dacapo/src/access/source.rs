//! What the sources of media share: the header of a unit, commands, and units that cannot be begun.

use super::timeline::Timeline;
use crate::command::MediaCommand;
use dacapo_base::Time;
use dacapo_core::{BeginError, CommandError, SourcePoll};
use dacapo_wire::media::{FLAG_LAST, FLAG_LOOP, Header};

/// A unit of a medium with so many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub index: u64,
    pub count: u64,
    pub media_ns: u64,
}

/// The header of a unit that is handed over now.
pub(super) fn header(timeline: &Timeline, now: Time, flags: u8, place: Place) -> Header {
    let Place { index, count, media_ns } = place;
    let repeated = match (timeline.is_repeated(), index + 1 == count) {
        (true, true) => FLAG_LOOP | FLAG_LAST,
        (true, false) => FLAG_LOOP,
        (false, _) => 0,
    };
    Header {
        flags: flags | repeated,
        generation: timeline.generation(),
        // The low bits: a medium of more than 2^32 units is longer than five years.
        index: index as u32,
        media_ns,
        sent_ns: now.as_nanos(),
    }
}

/// Follows a command from the peer's application.
pub(super) fn follow(
    timeline: &mut Timeline,
    now: Time,
    payload: &[u8],
) -> Result<Vec<u8>, CommandError> {
    let command = MediaCommand::decode(payload).map_err(|fault| CommandError(fault.to_string()))?;
    let answer = timeline.command(now, command);
    answer.map(|answer| answer.encode()).map_err(|text| CommandError(text.to_owned()))
}

/// What to answer when a unit cannot be begun.
pub(super) fn begin_failed(error: BeginError, what: &str, len: usize) -> SourcePoll {
    match error {
        BeginError::NoMemory => SourcePoll::Blocked,
        BeginError::TooLarge => {
            let text =
                format!("{what} has {len} bytes, which is more than a unit of this flow may");
            SourcePoll::Failed(text)
        }
    }
}
