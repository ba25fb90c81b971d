//! Bulk: one flow that always has more, from the creator to the participant.

use crate::pair::{PARTICIPANT, Pair, offer};
use crate::ports::Counts;
use crate::{TCP, counted};
use dacapo_core::{CoreEvent, Port};

/// Units before anything is counted: queues and memory have found their size.
const WARM_UP: u64 = 500;

/// Carries units of `unit_len` bytes and counts while `units` of them arrive; what was done.
pub fn run(transport: u16, unit_len: usize, units: u64) -> String {
    // A stream needs no segments, and loses nothing.
    let modules: &[&str] = if transport == TCP { &[] } else { &["segment", "sequence"] };
    let mut pair = Pair::new(offer(transport, modules, unit_len), unit_len);
    let peer = pair.connect();
    let session = pair.join(peer);
    pair.wait(|(_, event)| matches!(event, CoreEvent::Offered { .. }));
    let counts = Counts::default();
    pair.answer(session, Port::Sink(Box::new(counts.clone())));
    pair.wait(|(end, event)| *end == PARTICIPANT && matches!(event, CoreEvent::Ready { .. }));
    pair.activate(session);
    pair.run(|_| counts.units() >= WARM_UP);
    let (before, bytes) = (counts.units(), counts.bytes());
    counted(&mut || pair.run(|_| counts.units() >= before + units));
    let (came, bytes) = (counts.units() - before, counts.bytes() - bytes);
    assert_eq!(bytes, came * unit_len as u64, "units that are not whole");
    let bad = pair.events.iter().find(|(_, event)| {
        matches!(event, CoreEvent::FlowFailed { .. } | CoreEvent::SessionEnded { .. })
    });
    assert!(bad.is_none(), "{bad:?}");
    format!("{came} units, {bytes} bytes")
}
