//! Control: sessions over one connection, set up, changed while they run, and closed.

use crate::counted;
use crate::pair::{CREATOR, PARTICIPANT, Pair, graph, offer};
use crate::ports::Counts;
use dacapo_core::{CoreEvent, PeerId, Port, SessionId};

/// Sessions before anything is counted.
const WARM_UP: usize = 20;

/// Sessions that live at a time.
const AT_ONCE: usize = 10;

/// Bytes of a unit; few, for it is not the units that are counted here.
const UNIT: usize = 100;

/// Sets up, changes and closes so many sessions, and counts that; what was done.
pub fn run(sessions: usize) -> String {
    let mut flow = offer(crate::UDP, &["segment", "sequence"], UNIT);
    flow.bound_bps = 100_000;
    let mut pair = Pair::new(flow, UNIT);
    let peer = pair.connect();
    let counts = Counts::default();
    (0..WARM_UP / AT_ONCE).for_each(|_| live(&mut pair, peer, &counts));
    let before = counts.units();
    counted(&mut || (0..sessions / AT_ONCE).for_each(|_| live(&mut pair, peer, &counts)));
    let units = counts.units() - before;
    assert!(units > 0, "the sessions ran");
    format!("{sessions} sessions, {units} units")
}

/// The life of some sessions at once.
fn live(pair: &mut Pair, peer: PeerId, counts: &Counts) {
    let joined: Vec<SessionId> = (0..AT_ONCE).map(|_| pair.join(peer)).collect();
    let offered = |event: &CoreEvent| matches!(event, CoreEvent::Offered { .. });
    gather(pair, PARTICIPANT, offered);
    for session in &joined {
        pair.answer(*session, Port::Sink(Box::new(counts.clone())));
    }
    let served = gather_sessions(pair);
    for session in &joined {
        pair.activate(*session);
    }
    gather(pair, CREATOR, |event| matches!(event, CoreEvent::Active { .. }));
    for session in served {
        pair.change(session, graph(&["segment", "sequence", "checksum"]));
    }
    gather(pair, CREATOR, |event| matches!(event, CoreEvent::Changed { .. }));
    for session in joined {
        pair.close(session);
    }
    gather(pair, CREATOR, |event| matches!(event, CoreEvent::SessionEnded { error: None, .. }));
    pair.run(|pair| {
        let ended = |(end, event): &&(usize, CoreEvent)| {
            *end == PARTICIPANT && matches!(event, CoreEvent::SessionEnded { error: None, .. })
        };
        pair.events.iter().filter(ended).count() == AT_ONCE
    });
    pair.events.clear();
}

/// Waits until an end has told this of every session.
fn gather(pair: &mut Pair, at: usize, is_it: impl Fn(&CoreEvent) -> bool) {
    let told = |(end, event): &&(usize, CoreEvent)| *end == at && is_it(event);
    pair.run(|pair| pair.events.iter().filter(told).count() == AT_ONCE);
}

/// Waits until both ends are ready; the sessions as the creator numbers them.
fn gather_sessions(pair: &mut Pair) -> Vec<SessionId> {
    gather(pair, PARTICIPANT, |event| matches!(event, CoreEvent::Ready { .. }));
    let ready = pair.events.iter().filter_map(|(end, event)| match event {
        CoreEvent::Ready { session } if *end == CREATOR => Some(*session),
        _ => None,
    });
    ready.collect()
}
