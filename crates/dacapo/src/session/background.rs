//! The thread of an endpoint that works when nobody else does.
//!
//! ```text
//!   a call leads      -> parked: sleeps until it is told that nobody leads, and then for 5 ms
//!   a call has turned -> rests until nobody has for 5 ms
//!   nobody            -> leads: sleeps on the descriptor or until the next deadline, turns
//! ```
//!
//! What it is not: needed for the work of calls; it keeps the promises of the engine (life signs,
//! answers to the peer, pace) while the application is elsewhere.
//!
//! Invariants: it turns only when something has come or is due; while nothing happens it sleeps as
//! long as the engine lets it; a call takes the lead from it without asking; it ends as soon as the
//! endpoint stops, or nothing works any more.

use super::drive::{Guard, Lead, Shared, Sleeper, wait_at};
use dacapo_base::{Time, failpoint};
use dacapo_sys::clock;
use std::time::Duration;

/// It leads when nobody has turned for so long.
const QUIET: Duration = Duration::from_millis(5);

/// Works until the endpoint stops.
pub(super) fn run(shared: &Shared, mut sleeper: Sleeper) {
    let mut state = shared.lock();
    failpoint!("endpoint.thread");
    while !state.drive.is_stopping && state.failure.is_none() {
        let rest = state.drive.turned_at + QUIET;
        state = match state.drive.lead {
            Lead::Call => park(shared, state),
            Lead::Free | Lead::Background if rest > clock::now() => {
                state.drive.lead = Lead::Free;
                state.drive.counters.background_looks += 1;
                wait_at(&shared.background, state, rest)
            }
            Lead::Free | Lead::Background => lead(shared, state, &mut sleeper),
        };
    }
}

fn park<'a>(shared: &'a Shared, mut state: Guard<'a>) -> Guard<'a> {
    state.drive.is_parked = true;
    state.drive.counters.background_looks += 1;
    let mut state = wait_at(&shared.background, state, Time::NEVER);
    state.drive.is_parked = false;
    if state.drive.is_stopping {
        return state;
    }
    // A call that comes again at once, as calls do in a loop, is not to wake this thread each time.
    wait_at(&shared.background, state, clock::now() + QUIET)
}

/// Leads for one turn, unless a call takes the lead or has turned meanwhile.
fn lead<'a>(shared: &'a Shared, mut state: Guard<'a>, sleeper: &mut Sleeper) -> Guard<'a> {
    let until = state.next_deadline();
    state.drive.lead = Lead::Background;
    state.drive.background.set(until);
    let turned_at = state.drive.turned_at;
    drop(state);
    let slept = sleeper.sleep(until);
    let mut state = shared.lock();
    let came = state.came(slept);
    state.drive.background.clear();
    let mine = state.drive.lead == Lead::Background && state.drive.turned_at == turned_at;
    if mine && !state.drive.is_stopping {
        let is_due = came || until <= clock::now();
        let counters = &mut state.drive.counters;
        counters.background_turns += 1;
        counters.empty_turns += u64::from(!is_due);
        state.drive.lead = Lead::Free;
        state.turn();
        shared.after_turn(&mut state);
    }
    state
}
