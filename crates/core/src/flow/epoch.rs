//! [`TxEpoch`] and [`RxEpoch`]: one graph of a flow, running at one end.
//!
//! The runner with its number, labels and base.

use crate::flow::chain::Chain;
use crate::flow::tail::Tail;
use crate::flow::{Context, FlowOut, ModuleMessage, fitted};
use dacapo_base::Time;
use dacapo_lift::{Built, Property, Runner, Unread};
use dacapo_packet::{Layout, Packet, Pool};
use dacapo_wire::unit::{Header, Kind, Mark};
use std::collections::VecDeque;

/// Passes on what the modules of an epoch told beyond their packets: what those of a sender have
/// seen is of what left, and that of a receiver of what came.
#[inline]
pub(crate) fn tell(number: u64, runner: &mut Runner, end: End, out: &mut FlowOut) {
    if runner.has_told() {
        tell_all(number, runner, end, out);
    }
}

#[cold]
fn tell_all(number: u64, runner: &mut Runner, end: End, out: &mut FlowOut) {
    let told = runner.take_told();
    let modules = out.modules.get_or_insert_default();
    match end {
        End::Sender => modules.seen.left.add(&told.seen),
        End::Receiver => modules.seen.came.add(&told.seen),
    }
    modules.failure = modules.failure.take().or(told.failure);
    let messages = told.messages.into_iter();
    modules.asks.extend(messages.map(|it| ModuleMessage {
        epoch: number,
        place: it.module,
        payload: it.message,
    }));
}

/// Which end of a flow an epoch is at.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Sender,
    Receiver,
}

/// An epoch at the sender.
#[derive(Debug)]
pub(crate) struct TxEpoch {
    pub number: u64,
    pub runner: Runner,
    /// How units are laid out where the path takes the longest datagrams that were offered.
    full: Layout,
    /// How they are laid out now.
    pub layout: Layout,
    /// The receiver's label, in every datagram.
    pub label_tx: u32,
    /// Our label for what the receiver's modules send back.
    pub label_rx: u32,
    /// The number of its first unit.
    pub base: u64,
    /// How many units it was fed.
    pub fed: u64,
    /// A module tells the path what became of what is sent.
    pub is_acknowledged: bool,
}

impl TxEpoch {
    /// Whether a module keeps what was sent until it has come.
    pub fn keeps_all(&self) -> bool {
        let mut specs = self.runner.modules().map(|(spec, _)| spec);
        specs.any(|spec| spec.provides.contains(&Property::NoLoss))
    }

    pub fn new(number: u64, built: Built, label_rx: u32) -> Self {
        let layout = built.layout;
        let runner = built.into_runner();
        let is_acknowledged = runner.modules().any(|(spec, _)| spec.acknowledges);
        Self {
            number,
            full: layout,
            layout,
            is_acknowledged,
            runner,
            label_tx: 0,
            label_rx,
            base: 0,
            fed: 0,
        }
    }

    /// The longest datagrams that the graph was built for.
    pub fn datagram_len_max(&self) -> usize {
        self.full.stride()
    }

    /// From the next unit on segments are as long as fits datagrams of `len`; where nothing cuts
    /// units they stay as they are.
    pub fn cut_to(&mut self, len: usize) {
        let Layout { head, tail, segment, segmented } = self.full;
        if segmented {
            let fitting = len.saturating_sub(head + tail).clamp(1, segment);
            self.layout = Layout { segment: fitting, ..self.full };
        }
    }

    /// Writes the unit header and feeds the unit; its number is the one after the last. It goes
    /// through the graph with the next run.
    pub fn feed(&mut self, around: &mut Context<'_>, chain: &mut Vec<Packet>) {
        let header = Header::new(Kind::Data, self.fed);
        self.fed += 1;
        if let Some(first) = chain.first() {
            around.pool.write_payload(first, 0, &header.emit());
        }
        let last = chain.len().saturating_sub(1);
        for (index, mut packet) in chain.drain(..).enumerate() {
            packet.set_unit_ends(index == 0, index == last);
            self.runner.feed(around, packet);
        }
    }

    /// Sends a mark through the graph; without memory it is left out, for marks are repeated.
    pub fn mark(&mut self, around: &mut Context<'_>, kind: Kind) {
        let number = if kind == Kind::Begin { self.base } else { self.fed };
        let mark = Mark { epoch: self.number, number };
        let bytes = mark.emit(Header::new(kind, self.fed));
        let layout = fitted(&self.layout, bytes.len());
        let Ok(mut packet) = around.pool.alloc_train(&layout, bytes.len()) else { return };
        around.pool.write_payload(&packet, 0, &bytes);
        packet.set_kind(dacapo_packet::Kind::Mark);
        packet.set_unit_ends(true, true);
        packet.time = around.now;
        self.runner.feed(around, packet);
        self.runner.run(around);
    }
}

/// A unit that came through an epoch: its views, its place, and when its last packet arrived.
#[derive(Debug)]
pub(crate) struct Arrived {
    /// The number of the epoch.
    pub epoch: u64,
    pub chain: Chain,
    pub place: u64,
    pub time: Time,
    /// Until when it is of use, where a module has said so.
    pub use_by: Option<Time>,
    /// It waits where the sink has no room, as all of its epoch.
    pub waits_for_room: bool,
}

/// An epoch at the receiver.
#[derive(Debug)]
pub(crate) struct RxEpoch {
    pub number: u64,
    pub runner: Runner,
    /// Our label, in every datagram that comes.
    pub label_rx: u32,
    /// The sender's label for what our modules send back.
    pub label_tx: u32,
    /// The graph gives units in order.
    pub ordered: bool,
    /// Units wait where the sink has no room, for the sender waits for it or sends again.
    pub waits_for_room: bool,
    /// The number of its first unit, once it is known, and since when.
    pub base: Option<(u64, Time)>,
    /// The sender's last mark of this epoch came, through its graph.
    pub ended: bool,
    /// What was seen of its end, for when the next has begun.
    pub tail: Tail,
    /// The largest place that came, for the extension of the next.
    pub place_max: u64,
    /// A place far ahead that the next unit may confirm.
    outlier: Option<u64>,
    pub delivered: u64,
    /// Units that wait for the base, or until the epoch before is settled.
    pub held: VecDeque<Arrived>,
    chain: Chain,
    pub layout: Layout,
}

/// A place so far ahead of the largest is believed when the next unit confirms it.
const FAR: u64 = 8_192;

/// What came up through an epoch's graph.
#[derive(Debug)]
pub(crate) enum Up {
    /// A unit of the application.
    Data(Arrived),
    /// A mark.
    Mark(Kind, Mark),
}

impl RxEpoch {
    pub fn new(number: u64, built: Built, label_rx: u32, ordered: bool) -> Self {
        Self {
            number,
            layout: built.layout,
            runner: built.into_runner(),
            label_rx,
            label_tx: 0,
            ordered,
            waits_for_room: false,
            base: None,
            ended: false,
            tail: Tail::default(),
            place_max: 0,
            outlier: None,
            delivered: 0,
            held: VecDeque::new(),
            chain: Chain::default(),
        }
    }

    /// This end takes part from the unit at this place on.
    pub fn join_at(&mut self, place: u64) {
        self.place_max = place;
        self.runner.join();
    }

    /// The next whole unit that the graph has passed up.
    pub fn poll_up(
        &mut self,
        around: &mut Context<'_>,
        taken: &mut VecDeque<Packet>,
    ) -> Option<Up> {
        while let Some(packet) = taken.pop_front() {
            let packet = self.one_unit(around.pool, packet, taken);
            if packet.is_unit_first() {
                self.chain.free(around.pool);
            }
            let last = packet.is_unit_last();
            self.chain.push(packet);
            if last {
                let chain = self.chain.take();
                if let Some(up) = self.interpret(around, chain) {
                    return Some(up);
                }
            }
        }
        None
    }

    /// Where nothing joins packets each of them is a unit, however many came at once: the first,
    /// and the others go back.
    fn one_unit(
        &self,
        pool: &mut Pool,
        mut packet: Packet,
        taken: &mut VecDeque<Packet>,
    ) -> Packet {
        if self.layout.segmented {
            return packet;
        }
        if let Some(first) = pool.split_first(&mut packet, 1) {
            taken.push_front(std::mem::replace(&mut packet, first));
        }
        // A module that takes no trains has had them split, as if they were parts of one unit.
        packet.set_unit_ends(true, true);
        packet
    }

    /// Reads the unit header; what is malformed is freed and will count as lost.
    fn interpret(&mut self, around: &mut Context<'_>, mut chain: Chain) -> Option<Up> {
        let first = chain.first()?;
        let head = around.pool.segment(first, 0);
        let header = Header::parse(head);
        if let Ok(header) = header
            && header.kind == Kind::Data
            && let Some(place) = header.place_near(self.place_max)
            && self.is_plausible(place)
        {
            self.place_max = self.place_max.max(place);
            let use_by = chain.use_by();
            let came = chain.iter().map(|packet| packet.time).max();
            let time = came.filter(|_| use_by.is_none()).unwrap_or(around.now);
            let (epoch, waits_for_room) = (self.number, self.waits_for_room);
            return Some(Up::Data(Arrived { epoch, chain, place, time, use_by, waits_for_room }));
        }
        let body = head.get(dacapo_wire::unit::LEN..).unwrap_or_default();
        let mark = header.ok().zip(Mark::parse(body).ok());
        chain.free(around.pool);
        let (header, mark) = mark.filter(|(_, mark)| mark.epoch == self.number)?;
        match header.kind {
            Kind::Begin | Kind::End => Some(Up::Mark(header.kind, mark)),
            // Probes through a new path are answered once paths can differ; nobody sends them yet.
            Kind::Data | Kind::Probe | Kind::Answer => None,
        }
    }

    /// A place far ahead must be confirmed by the next unit: on a graph without a check one altered
    /// bit would otherwise book everything below as lost.
    fn is_plausible(&mut self, place: u64) -> bool {
        let near = |from: u64| place <= from.saturating_add(FAR);
        let confirmed = self.outlier.is_some_and(|it| place >= it && near(it));
        if near(self.place_max) || confirmed {
            self.outlier = None;
            return true;
        }
        self.outlier = Some(place);
        false
    }

    /// Passes on what its modules told beyond their packets.
    #[inline]
    pub fn tell(&mut self, out: &mut FlowOut) {
        tell(self.number, &mut self.runner, End::Receiver, out);
    }

    /// What waits where so much does for the sink: what is held of this epoch, too.
    pub fn unread(&self, waiting: Unread) -> Unread {
        let bytes: usize = self.held.iter().map(|arrived| arrived.chain.unit_len()).sum();
        let units = waiting.units + self.held.len() as u64;
        Unread { units, bytes: waiting.bytes + bytes as u64 }
    }

    /// Gives every view back.
    pub fn flush(&mut self, around: &mut Context<'_>) {
        self.runner.flush(around);
        self.chain.free(around.pool);
        for mut held in self.held.drain(..) {
            held.chain.free(around.pool);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::tests::{Bench, empty_graph};

    #[test]
    fn segments_are_cut_to_what_fits_between_head_and_tail() {
        let full = Layout { head: 9, tail: 4, segment: 200, segmented: true };
        let mut epoch = TxEpoch::new(0, Built::new(Vec::new(), full), 1);
        assert_eq!(epoch.datagram_len_max(), 213);
        for (len, segment) in [(113, 100), (213, 200), (5_000, 200), (14, 1), (13, 1), (0, 1)] {
            epoch.cut_to(len);
            assert_eq!((epoch.layout.segment, epoch.datagram_len_max()), (segment, 213), "{len}");
        }
        let full = Layout { segmented: false, ..full };
        let mut epoch = TxEpoch::new(0, Built::new(Vec::new(), full), 1);
        epoch.cut_to(113);
        assert_eq!(epoch.layout, full, "nothing cuts units here");
    }

    #[test]
    fn the_first_mark_says_where_an_epoch_begins_and_the_last_how_much_it_had() {
        let mut bench = Bench::new();
        let mut epoch = TxEpoch::new(5, empty_graph(), 1);
        (epoch.base, epoch.fed) = (70, 3);
        for (kind, number) in [(Kind::Begin, 70), (Kind::End, 3)] {
            epoch.mark(&mut bench.cx(), kind);
            let packets: Vec<Packet> = epoch.runner.take_down().drain().collect();
            let [packet] = &packets[..] else { panic!("{packets:?}") };
            let bytes = bench.pool.segment(packet, 0);
            assert_eq!(Header::parse(bytes).map(|it| it.kind), Ok(kind));
            let body = Mark::parse(&bytes[dacapo_wire::unit::LEN..]);
            assert_eq!(body, Ok(Mark { epoch: 5, number }));
            packets.into_iter().for_each(|packet| bench.pool.free(packet));
        }
        assert_eq!(bench.pool.live_views(), 0);
    }
}
