//! Cases of QUIC streams: too many, silent, broken off, of the wrong kind.

use crate::Case;
use crate::Outcome::{GoesOn, Open, Seen};
use crate::arena::{At, join};
use crate::wire::{bytes_of, header};
use crate::{dialer, listener};
use dacapo_core::Code;
use dacapo_wire::message::Message;
use dacapo_wire::session::Activate;
use quinn_proto::Dir;

pub fn cases() -> Vec<Case> {
    [silent(), broken(), of_another_kind()].into_iter().flatten().collect()
}

fn silent() -> Vec<Case> {
    vec![
        dialer("every stream there may be at first, and nothing", At::Active, GoesOn, |arena| {
            let opened = std::iter::from_fn(|| arena.raw.open()).count();
            assert!((200..=220).contains(&opened), "{opened} streams");
            arena.run(2_000);
            assert_eq!(arena.lab.world.core(arena.core).sessions().count(), 2);
        }),
        dialer("every stream there may be, a byte on each", At::Active, GoesOn, |arena| {
            // There are more when half are in use.
            let mut opened = 0;
            loop {
                let streams: Vec<_> = std::iter::from_fn(|| arena.raw.open()).collect();
                if streams.is_empty() {
                    break;
                }
                opened += streams.len();
                streams.iter().for_each(|stream| arena.raw.push(*stream, &[0]));
                arena.run(60);
            }
            assert!((870..=886).contains(&opened), "{opened} streams");
            arena.run(2_000);
            assert_eq!(arena.lab.world.core(arena.core).sessions().count(), 2);
        }),
        dialer("5,000 streams that are opened and reset", At::Active, GoesOn, |arena| {
            let mut opened = 0;
            while opened < 5_000 {
                let streams: Vec<_> = std::iter::from_fn(|| arena.raw.open()).take(500).collect();
                opened += streams.len();
                for stream in &streams {
                    arena.raw.push(*stream, &header(0x10, 40));
                }
                arena.run(40);
                streams.iter().for_each(|stream| arena.raw.reset(*stream));
                arena.run(40);
            }
        }),
        dialer("5,000 streams that are opened and ended", At::Active, GoesOn, |arena| {
            let mut opened = 0;
            while opened < 5_000 {
                let streams: Vec<_> = std::iter::from_fn(|| arena.raw.open()).take(500).collect();
                opened += streams.len();
                streams.iter().for_each(|stream| arena.raw.finish(*stream));
                arena.run(60);
            }
        }),
        listener("a listener's streams with half a JOIN", At::Active, GoesOn, |arena| {
            let streams: Vec<_> = std::iter::from_fn(|| arena.raw.open()).take(500).collect();
            let half = &bytes_of(join("down"))[..9];
            streams.iter().for_each(|stream| arena.raw.push(*stream, half));
            arena.run(1_000);
            assert_eq!(arena.lab.world.core(arena.core).sessions().count(), 2);
        }),
    ]
}

fn broken() -> Vec<Case> {
    vec![
        dialer("a reset within a record", At::Active, Open, |arena| {
            arena.push(&bytes_of(Activate { request: 1 })[..9]);
            arena.run(10);
            arena.raw.reset(arena.stream);
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Violation)));
        }),
        dialer("a session's stream that is not to be written to", At::Active, Open, |arena| {
            arena.raw.stop(arena.stream);
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Violation)));
        }),
        dialer(
            "a session's stream that is not to be written to, from its JOIN on",
            At::Opened,
            Open,
            |arena| {
                arena.say(join("down"));
                arena.raw.stop(arena.stream);
                arena.run(60);
                assert_eq!(arena.lab.world.core(arena.core).sessions().count(), 1);
            },
        ),
        listener("a listener resets the session's stream", At::Answered, Open, |arena| {
            arena.raw.reset(arena.stream);
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Violation)));
        }),
        listener("a listener ends the session's stream", At::Active, Open, |arena| {
            arena.raw.finish(arena.stream);
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Violation)));
        }),
        listener("a listener does not want the session's stream", At::Opened, Open, |arena| {
            arena.raw.stop(arena.stream);
            arena.run(40);
            assert_eq!(arena.ended(), Some(Some(Code::Violation)));
        }),
    ]
}

fn of_another_kind() -> Vec<Case> {
    vec![
        dialer("a stream of one direction", At::Active, GoesOn, |arena| {
            assert_eq!(arena.raw.quic().streams().open(Dir::Uni), None, "the core allows none");
        }),
        dialer("a datagram of QUIC", At::Active, GoesOn, |arena| {
            let sent = arena.raw.quic().datagrams().send(vec![1; 100].into(), true);
            assert!(sent.is_err(), "the core allows none");
        }),
        dialer("a new key for every second packet", At::Active, GoesOn, |arena| {
            for _ in 0..50 {
                arena.raw.quic().force_key_update();
                arena.run(20);
            }
        }),
        dialer("5,000 signs of life", At::Active, GoesOn, |arena| {
            for _ in 0..5_000 {
                arena.raw.quic().ping();
                arena.run(1);
            }
        }),
        dialer("no credit for any stream", At::Active, Seen, |arena| {
            arena.raw.quic().set_receive_window(0_u8.into());
            arena.run(500);
            assert!(matches!(arena.take(), None | Some(Message::End(_))));
        }),
    ]
}
