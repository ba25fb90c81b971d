//! The level of XTP: messages of its streams, without this service.

use super::Run;
use super::net::{Net, PORT, host, until_done};
use dacapo_base::{Random, Time};
use dacapo_xtp::{ContextId, Engine, Event, Listen, Message, Open, Read};
use std::time::Duration;

/// How much is read at a time, as the service does.
const PIECE_LEN: usize = 16 << 10;

/// Two engines with an association between them.
struct Pair {
    net: Net<Engine>,
    ids: [Option<ContextId>; 2],
    piece: Vec<u8>,
}

impl Pair {
    fn new(now: Time) -> Option<Self> {
        let mut ends: Vec<Engine> = (0..2)
            .map(|end| Engine::new(dacapo_xtp::Config::default(), Random::from_number(end)))
            .collect();
        let [near, far] = ends.as_mut_slice() else { return None };
        far.listen(Listen::on(PORT)).ok()?;
        let (there, here) = ((host(1).ip(), PORT).into(), (host(0).ip(), PORT).into());
        let id = near.open(now, &Open::stream(host(1), there, here)).ok()?;
        let piece = vec![0; PIECE_LEN];
        Some(Self { net: Net::new(ends), ids: [Some(id), None], piece })
    }

    /// Packets both ways; the end that was opened is known afterwards.
    fn carry(&mut self, now: Time) {
        for from in 0..2 {
            self.net.carry(now, from, |_, _| {});
        }
        for (engine, id) in self.net.ends.iter_mut().zip(&mut self.ids) {
            while let Some(event) = engine.poll_event() {
                if let Event::Incoming { id: incoming, .. } = event {
                    *id = Some(incoming);
                }
            }
        }
    }

    /// Writes what there is room for; gives what is left.
    fn write(&mut self, now: Time, end: usize, left: usize) -> usize {
        let id = self.ids.get(end).copied().flatten();
        let Some((engine, id)) = self.net.ends.get_mut(end).zip(id) else { return left };
        let data = self.piece.get(..left.min(PIECE_LEN)).unwrap_or_default();
        let message = Message { is_end: data.len() == left, ..Message::part(data) };
        left.saturating_sub(engine.write(now, id, &message).unwrap_or(0))
    }

    /// Reads what is there; how many messages have ended.
    fn read(&mut self, now: Time, end: usize) -> u32 {
        let id = self.ids.get(end).copied().flatten();
        let Some((engine, id)) = self.net.ends.get_mut(end).zip(id) else { return 0 };
        let mut count: u32 = 0;
        while let Ok(Read::Data { is_end, .. }) = engine.read(now, id, &mut self.piece) {
            count = count.saturating_add(u32::from(is_end));
        }
        count
    }

    fn round_trip(&mut self, run: Run, clock: &mut dyn FnMut() -> Time) -> Option<()> {
        let (mut there, mut back) = (run.len, run.len);
        let (mut is_there, mut is_back) = (false, false);
        until_done(clock, |now| {
            while there > 0 {
                let left = self.write(now, 0, there);
                if std::mem::replace(&mut there, left) == left {
                    break;
                }
            }
            self.carry(now);
            is_there |= self.read(now, 1) > 0;
            while is_there && back > 0 {
                let left = self.write(now, 1, back);
                if std::mem::replace(&mut back, left) == left {
                    break;
                }
            }
            self.carry(now);
            is_back |= self.read(now, 0) > 0;
            is_back
        })
        .map(|_| ())
    }
}

/// How long `count` round trips take, after one that opens the association.
pub fn echo(run: Run, clock: &mut dyn FnMut() -> Time) -> Option<Duration> {
    let mut pair = Pair::new(clock())?;
    pair.round_trip(run, clock)?;
    let began = clock();
    for _ in 0..run.count {
        pair.round_trip(run, clock)?;
    }
    Some(clock().since(began))
}

/// How long it takes to write `count` messages, after a round trip that opens the association.
pub fn stream(run: Run, clock: &mut dyn FnMut() -> Time) -> Option<Duration> {
    let mut pair = Pair::new(clock())?;
    pair.round_trip(run, clock)?;
    let began = clock();
    let mut ended = began;
    for _ in 0..run.count {
        let mut left = run.len;
        ended = until_done(clock, |now| {
            left = pair.write(now, 0, left);
            pair.carry(now);
            pair.read(now, 1);
            left == 0
        })?;
    }
    Some(ended.since(began))
}
