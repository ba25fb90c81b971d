//! The oracles: what holds for every [`Trial`], whatever the faults were.
//!
//! ```text
//!   resolved   a session or a typed reason in time; each end is told once; nothing hangs
//!   books      sent = delivered + late + lost + dropped, and both ends agree
//!   units      unaltered on checked graphs, in order on ordered ones, never twice
//!   progress   what is sent after the faults arrives
//!   left       no view, session, connection or stream; no more than 3 bytes out per byte in before
//!              an address is proved
//! ```

use super::{Carrier, FlowOutcome, FlowPlan, Outcome, Trial};
use dacapo_core::{Code, Error, Fault, Ledger};
use std::time::Duration;

/// How long `connect` may take to say yes or no.
const OPEN_MAX: Duration = Duration::from_millis(10_100);

/// How long it may take from there until the session is ready or has a reason: the offer, the data
/// path with the answer, and the streams have 10 s each.
const READY_MAX: Duration = Duration::from_millis(30_100);

/// The most bytes out per byte in before an address is proved (RFC 9000, section 8.1).
const AMPLIFICATION_MAX: f64 = 3.0;

/// How much of the time after the faults a flow may need to find its pace again.
const HEAL: Duration = Duration::from_millis(1_000);

/// Whether this may be the reason for an end when the network is at fault and nobody else.
fn is_of_network(error: &Error) -> bool {
    error.fault() == Fault::Network || matches!(error.code, Code::NoAnswer | Code::Closed)
}

/// Checks an outcome.
///
/// # Errors
/// What broke, in words.
pub fn check(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    check_decided(trial, outcome)?;
    check_resolved(trial, outcome)?;
    check_reasons(trial, outcome)?;
    for (place, (plan, flow)) in trial.flows.iter().zip(&outcome.flows).enumerate() {
        let named = |error: String| format!("flow {place}: {error}");
        check_units(plan, flow).map_err(named)?;
        check_books(trial, outcome, plan, flow).map_err(named)?;
        check_healed(trial, plan, flow).map_err(named)?;
    }
    check_exact(trial, outcome)?;
    check_changes(outcome)?;
    check_left(outcome)
}

/// Whether it can be said at all what the link took, where that is asked for.
fn check_decided(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    if trial.exact && outcome.units.values().any(|unit| unit.waits > 0) {
        return Err(
            "a trial cannot be exact over a link with active queue management, which does \
                    not say which units it drops: leave out aqm, or exact"
                .into(),
        );
    }
    Ok(())
}

fn is_clean(outcome: &Outcome) -> bool {
    outcome.error().is_none() && outcome.killed == [false; 2]
}

fn check_resolved(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    let stages = &outcome.stages;
    if outcome.ends.iter().any(|&count| count > 1) {
        return Err(format!("the end of the session was reported {:?} times", outcome.ends));
    }
    if stages.creator_ready.is_some() && !outcome.killed[0] && outcome.ended[0].is_none() {
        return Err("the creator was never told of the end".into());
    }
    let told = outcome.ended[1].is_some() || outcome.lost[1].is_some();
    if !outcome.killed[1] && !told {
        return Err("the participant was never told of the end".into());
    }
    // What is measured on a clock that jumps says nothing.
    let jumps = trial
        .from_start
        .iter()
        .any(|(_, fault)| matches!(fault, super::Fault::Jump(..) | super::Fault::Freeze(..)));
    let opened = stages.open.or(stages.failed);
    if !jumps && !outcome.killed[1] && opened.is_none_or(|at| at > OPEN_MAX) {
        return Err(format!("neither a connection nor a reason in time: {stages:?}"));
    }
    let ready = stages.ready.or(stages.failed);
    let since = stages.open.unwrap_or_default();
    if !jumps && !outcome.killed[1] && ready.is_none_or(|at| at > since + READY_MAX) {
        return Err(format!("neither a session nor a reason in time: {stages:?}"));
    }
    if is_clean(outcome) && stages.running.is_some() && !outcome.settled {
        return Err(format!("stuck: nothing was settled in {:?}", trial.time_max));
    }
    Ok(())
}

fn check_reasons(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    let ended = outcome.ended.iter().flatten().filter_map(|it| it.as_ref().err());
    let reasons = ended.chain(outcome.lost.iter().flatten());
    if let Some(error) = reasons.clone().find(|error| !is_of_network(error)) {
        return Err(format!("the network was at fault, and this was said: {error}"));
    }
    if !trial.must_complete {
        return Ok(());
    }
    // Who says goodbye last is gone for the other.
    if let Some(error) = outcome.error().filter(|error| error.code != Code::Closed) {
        return Err(format!("it must complete: {error}"));
    }
    match outcome.stages.running {
        None => Err(format!("it must complete and never ran: {:?}", outcome.stages)),
        Some(_) => Ok(()),
    }
}

fn check_units(plan: &FlowPlan, flow: &FlowOutcome) -> Result<(), String> {
    let record = &flow.record;
    if plan.is_checked() && record.altered + record.misnumbered > 0 {
        let (altered, misnumbered) = (record.altered, record.misnumbered);
        return Err(format!("{altered} units altered, {misnumbered} under another number"));
    }
    let mut numbers = record.numbers.clone();
    if plan.is_ordered() && !numbers.windows(2).all(|pair| pair[0] < pair[1]) {
        return Err("units repeated or out of order".into());
    }
    numbers.sort_unstable();
    match numbers.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("unit {} was delivered twice", pair[0])),
        None => Ok(()),
    }
}

fn check_books(
    trial: &Trial,
    outcome: &Outcome,
    plan: &FlowPlan,
    flow: &FlowOutcome,
) -> Result<(), String> {
    if flow.ends.iter().any(|&count| count > 1) {
        return Err(format!("its end was reported {:?} times", flow.ends));
    }
    let ledgers = [&flow.received, &flow.sent].into_iter().flatten();
    if let Some(ledger) = ledgers.clone().find(|ledger| !ledger.closes()) {
        return Err(format!("the books do not close: {ledger:?}"));
    }
    let delivered = flow.record.numbers.len() as u64;
    // Without a check a unit that came twice may have come under a number that was never sent; it
    // is booked as repeated.
    let surplus = |it: &&Ledger| !plan.is_checked() && it.delivered < delivered;
    let wrong = |it: &&Ledger| it.delivered != delivered && !surplus(it);
    if let Some(received) = flow.received.as_ref().filter(wrong) {
        return Err(format!("{delivered} units came, and booked are {received:?}"));
    }
    let ran = outcome.stages.running.is_some();
    if !is_clean(outcome) || flow.failures > 0 || !ran {
        let missing = (0..2).any(|end| !outcome.killed[end] && flow.ends[end] == 0);
        return if ran && missing { Err("it was never accounted for".into()) } else { Ok(()) };
    }
    let (Some(received), Some(sent)) = (&flow.received, &flow.sent) else {
        return Err("it was never accounted for".into());
    };
    check_agree(received, sent)?;
    if outcome.settled && sent.sent != plan.pattern.count {
        return Err(format!("{} units were to be sent: {sent:?}", plan.pattern.count));
    }
    if plan.is_checked() && flow.hash == Some(false) {
        return Err("both ends agree on the units and not on their bytes".into());
    }
    let whole = plan.carrier == Carrier::Tcp || trial.exact;
    let mishap = received.late + received.unknown + received.dropped_count();
    if whole && mishap > 0 {
        return Err(format!("late, dropped or unknown where nothing can be: {received:?}"));
    }
    if plan.carrier == Carrier::Tcp && received.delivered != received.sent {
        return Err(format!("a stream loses nothing: {received:?}"));
    }
    Ok(())
}

fn check_agree(received: &Ledger, sent: &Ledger) -> Result<(), String> {
    let of = |it: &Ledger| (it.sent, it.delivered, it.late, it.lost, it.dropped, it.unknown);
    if received.unknown > 0 || of(received) != of(sent) {
        return Err(format!("the two ends do not agree: {received:?} and {sent:?}"));
    }
    Ok(())
}

/// What is sent once the faults are over, and some time has passed, arrives.
fn check_healed(trial: &Trial, plan: &FlowPlan, flow: &FlowOutcome) -> Result<(), String> {
    let (Some(healed), Some(received)) = (trial.healed_after, &flow.received) else {
        return Ok(());
    };
    let first = (healed + HEAL).as_nanos().div_ceil(plan.pattern.every.as_nanos().max(1)) as u64;
    let wanted = received.sent.saturating_sub(first);
    let came = flow.record.numbers.iter().filter(|&&number| number >= first).count() as u64;
    if wanted == 0 || came != wanted {
        return Err(format!("{came} of the {wanted} units sent after the faults came"));
    }
    Ok(())
}

/// Lost is what the link took: no more, and no less.
fn check_exact(trial: &Trial, outcome: &Outcome) -> Result<(), String> {
    let (true, [flow], true) = (trial.exact, &outcome.flows[..], is_clean(outcome)) else {
        return Ok(());
    };
    let taken: Vec<u64> =
        outcome.units.iter().filter(|(_, unit)| unit.arrives == 0).map(|(n, _)| *n).collect();
    if flow.record.lost == taken {
        return Ok(());
    }
    let differs = flow.record.lost.iter().zip(&taken).find(|(lost, taken)| lost != taken);
    Err(format!(
        "{} units were reported lost and the link took {}; they differ first at {differs:?}",
        flow.record.lost.len(),
        taken.len()
    ))
}

fn check_changes(outcome: &Outcome) -> Result<(), String> {
    let (begun, made, failed) = outcome.changes;
    if is_clean(outcome) && made + failed != begun {
        return Err(format!("{begun} changes were begun, {made} made and {failed} failed"));
    }
    Ok(())
}

fn check_left(outcome: &Outcome) -> Result<(), String> {
    let [views, sessions, connections, streams] = outcome.left;
    if outcome.left != [0; 4] {
        return Err(format!(
            "left over: {views} views, {sessions} sessions, {connections} connections, {streams} \
             streams"
        ));
    }
    if outcome.amplification > AMPLIFICATION_MAX {
        let ratio = outcome.amplification;
        return Err(format!("{ratio:.2} bytes out per byte in before an address was proved"));
    }
    Ok(())
}
