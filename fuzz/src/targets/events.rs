//! Reports of the network that lie, in any order, to two cores that serve and join each other's
//! sessions.
//!
//! ```text
//!   input -> commands and time, as in `commands`
//!         -> a stream opens, has room, has none, measures, falls back, ends; a refusal, a length,
//!            a peer on this host, a group joined or lost: whether that is so or not
//!            |
//!            v   a stream that lies ends itself only; no panic, no standstill; a report takes no
//!                more memory than its bytes justify; when all is over nothing is left
//! ```

use super::commands::{CLOSED_BY_A_LIE, Scene};
use crate::input::Input;
use dacapo_base::Address;
use dacapo_core::{ChannelEvent, HostLookup, ListenerId, NetworkEvent};
use dacapo_lift::{BelowSeen, Membership};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

/// The most steps of a script.
const STEPS_MAX: usize = 120;

/// What is said in a reason, at most.
const REASON_LEN_MAX: usize = 300;

impl Scene {
    fn report(&mut self, input: &mut Input<'_>) {
        let how = input.u8();
        let at = usize::from(how >> 7);
        match how & 0x7F {
            0..=79 => self.of_stream(at, input),
            _ => self.of_network(at, input),
        }
    }

    /// Something about a stream that is, was, or is another session's.
    fn of_stream(&mut self, at: usize, input: &mut Input<'_>) {
        let Some(stream) = self.stream(at, input.u8()) else { return };
        let how = input.u8();
        let (event, kind) = match how & 7 {
            0 => (ChannelEvent::Open, "said to be open"),
            1 | 2 => (ChannelEvent::Ready(how & 8 == 0), "said to be ready"),
            3 => {
                let transport = u16::from(how >> 3);
                (ChannelEvent::Fallback { transport, reason: reason(input) }, "said to fall back")
            }
            4 => (ChannelEvent::Estimates(seen(input)), "said to have measured"),
            5 => (ChannelEvent::Closed(reason(input)), CLOSED_BY_A_LIE),
            _ => (ChannelEvent::Ready(true), "said to be ready"),
        };
        self.call(at, REASON_LEN_MAX, |core, now| core.handle_channel(now, stream, event));
        self.note_seen(kind);
    }

    fn of_network(&mut self, at: usize, input: &mut Input<'_>) {
        let how = input.u8();
        let remote = self.remote(at, how, input);
        let (event, kind) = match how & 7 {
            0 => (NetworkEvent::Refused(remote), "said to be refused"),
            1 | 2 => {
                let len = (how & 8 == 0).then(|| usize::from(input.u16()));
                (NetworkEvent::TooLarge { remote, len }, "said to be too large")
            }
            3 | 4 => {
                let Some(peer) = self.peer(at, input.u8()) else { return };
                let transport = u16::from(how >> 4);
                (NetworkEvent::Found(HostLookup { peer, transport, remote }), "said to be found")
            }
            5 | 6 => {
                let result = if how & 8 == 0 { Ok(()) } else { Err(reason(input)) };
                let (group, source) = (group(input), remote.ip().unwrap_or(group(input)));
                let source_specific = how & 16 == 0;
                let joined = Membership { group, source, source_specific };
                (NetworkEvent::Joined(joined, result), "said to be joined")
            }
            _ => {
                let local = (how & 8 == 0).then(ListenerId::default);
                let (group, reason) = (group(input).into(), reason(input));
                (NetworkEvent::GroupClosed { local, group, reason }, "said to be lost")
            }
        };
        self.call(at, REASON_LEN_MAX, |core, now| core.handle_network(now, event));
        self.note_seen(kind);
    }

    /// The other core's address, or anybody's.
    fn remote(&self, at: usize, how: u8, input: &mut Input<'_>) -> Address {
        if how & 0x40 == 0 {
            return self.address_of(1 - at).into();
        }
        SocketAddr::from(([192, 0, 2, input.u8()], u16::from(how))).into()
    }
}

/// One of the groups to which flows of these sessions go, or any.
fn group(input: &mut Input<'_>) -> SocketAddr {
    SocketAddr::from(([239, 1, 1, input.u8() % 4], 5_004))
}

fn reason(input: &mut Input<'_>) -> String {
    "because ".repeat(usize::from(input.u8()) % (REASON_LEN_MAX / 8))
}

fn seen(input: &mut Input<'_>) -> BelowSeen {
    let how = input.u8();
    BelowSeen {
        rtt: (how & 1 == 0).then(|| Duration::from_nanos(input.number())),
        delivery_rate_bps: (how & 2 == 0).then(|| input.number()),
        window_bytes: (how & 4 == 0).then(|| input.number()),
        sent_packets: input.number(),
        lost_packets: input.number(),
    }
}

/// A script of commands and reports.
pub fn events(bytes: &[u8]) {
    play(bytes);
}

/// Plays a script and checks everything; what has happened on the way, by its kind.
///
/// # Panics
/// Something does not hold.
pub fn play(bytes: &[u8]) -> BTreeSet<&'static str> {
    let (mut scene, mut input) = (Scene::new(), Input(bytes));
    let mut steps = 0;
    while !input.is_empty() && steps < STEPS_MAX {
        if input.u8() & 1 == 0 {
            scene.step(&mut input)
        } else {
            scene.report(&mut input)
        }
        steps += 1;
    }
    scene.finish()
}

/// Sessions over streams, datagrams and a group, and each report in the middle of one.
pub fn events_seeds() -> Vec<Vec<u8>> {
    let command = |bytes: &[u8]| [&[0], bytes].concat();
    let report = |bytes: &[u8]| [&[1], bytes].concat();
    let pass = |bits: u8| command(&[108, bits]);
    // Two flows without modules: a byte of each says what carries it, and which way.
    let begun = |how: [u8; 2]| {
        let serve = command(&[12, 0, 0, 2, how[0], 0, how[1], 0, 0x20, 0]);
        let (connect, join) = (command(&[0x80, 1]), command(&[0x80 | 28, 0, 0, 0]));
        let (answer, begin) = (command(&[0x80 | 48, 3, 0]), command(&[0x80 | 64, 0, 0, 0]));
        [serve, connect, pass(10), join, pass(10), answer, pass(11), begin, pass(8)].concat()
    };
    let (datagrams, streams, group) = (begun([0, 4]), begun([2, 6]), begun([3, 0]));
    let of_stream = |how: u8, rest: &[u8]| {
        [report(&[&[0, 0, how], rest].concat()), report(&[&[0x80, 1, how], rest].concat())].concat()
    };
    let closed = [command(&[0x80 | 64, 0, 7, 0]), pass(11)].concat();
    let odd: [(u8, &[u8]); 7] =
        [(0, &[]), (1, &[]), (9, &[]), (3, &[5]), (4, &[0, 1, 2, 3, 4, 5]), (5, &[3]), (13, &[0])];
    let mut seeds: Vec<Vec<u8>> = odd
        .iter()
        .map(|(how, rest)| {
            let lie = of_stream(*how, rest);
            [&streams[..], &lie, &pass(9), &lie, &pass(5), &closed].concat()
        })
        .collect();
    for how in [0, 1, 9, 3, 5, 13, 7, 15] {
        let lie = [report(&[80, how, 0, 0, 0]), report(&[0x80 | 80, how, 0, 0, 0])].concat();
        seeds.push([&datagrams[..], &lie, &pass(10), &lie, &closed].concat());
        seeds.push([&group[..], &lie, &pass(10), &lie, &closed].concat());
    }
    seeds
}
