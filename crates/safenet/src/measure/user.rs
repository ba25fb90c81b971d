//! The level of users: messages.

use super::net::{Net, PORT, group, host, until_done};
use super::{Cast, Run};
use crate::config::{Config, Mode, Route};
use crate::inflow::Ending;
use crate::{MessageService, SendError};
use dacapo_base::{Random, Time};
use dacapo_xtp::Engine;
use std::time::Duration;

fn net(run: Run) -> Option<Net<MessageService>> {
    let receivers = match run.cast {
        Cast::Unicast => 1,
        Cast::Multicast { receivers } => receivers,
    };
    let ends = (0..=receivers).map(|end| {
        let engine = Engine::new(dacapo_xtp::Config::default(), Random::from_number(end as u64));
        let config = Config::new((host(end).ip(), PORT).into());
        let mut service = MessageService::new(config, engine);
        service.listen(PORT).ok().map(|()| service)
    });
    Some(Net::new(ends.collect::<Option<_>>()?))
}

fn route(run: Run, end: usize) -> Route {
    match run.cast {
        Cast::Unicast => Route::host(host(end), PORT),
        Cast::Multicast { .. } => Route::group(group(), PORT),
    }
}

/// Takes what has come; whether a message is whole now.
fn take(service: &mut MessageService, now: Time) -> bool {
    let mut is_whole = false;
    while let Some(part) = service.get_message(now, PORT) {
        is_whole |= part.ending == Ending::Last;
    }
    while service.poll_event().is_some() {}
    is_whole
}

fn send(net: &mut Net<MessageService>, now: Time, from: usize, run: Run) -> Result<(), SendError> {
    let route = route(run, usize::from(from == 0));
    let Some(end) = net.ends.get_mut(from) else { return Err(SendError::Closed) };
    end.send_message(now, route, Mode::Asynchronous, vec![0; run.len]).map(|_| ())
}

/// One round trip: sent asynchronously, and the echo of the first receiver taken synchronously.
fn round_trip(
    net: &mut Net<MessageService>,
    run: Run,
    clock: &mut dyn FnMut() -> Time,
) -> Option<()> {
    send(net, clock(), 0, run).ok()?;
    let (mut is_there, mut is_answered, mut is_back) = (false, false, false);
    until_done(clock, |now| {
        for from in 0..net.ends.len() {
            net.carry(now, from, |end, service| {
                let is_whole = take(service, now);
                is_there |= is_whole && end == 1;
                is_back |= is_whole && end == 0;
            });
            if is_there && !is_answered {
                is_answered = send(net, now, 1, run).is_ok();
            }
        }
        is_back
    })
    .map(|_| ())
}

/// How long `count` round trips take, after one that makes the associations.
pub fn echo(run: Run, clock: &mut dyn FnMut() -> Time) -> Option<Duration> {
    let mut net = net(run)?;
    round_trip(&mut net, run, clock)?;
    let began = clock();
    for _ in 0..run.count {
        round_trip(&mut net, run, clock)?;
    }
    Some(clock().since(began))
}

/// How long it takes from the first message to the last, after one that makes the associations; a
/// message that is refused is sent again when there is room.
pub fn stream(run: Run, clock: &mut dyn FnMut() -> Time) -> Option<Duration> {
    let mut net = net(run)?;
    round_trip(&mut net, run, clock)?;
    let began = clock();
    let mut ended = began;
    for _ in 0..run.count {
        ended = until_done(clock, |now| {
            let is_sent = send(&mut net, now, 0, run).is_ok();
            for from in 0..net.ends.len() {
                net.carry(now, from, |_, service| {
                    take(service, now);
                });
                net.ends.iter_mut().for_each(|service| while service.poll_event().is_some() {});
            }
            is_sent
        })?;
    }
    Some(ended.since(began))
}
