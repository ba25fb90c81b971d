//! [`FanOut`]: a flow with one sender for all Participants who agreed on the same: sent once to a
//! group, or to the stream of each.
//!
//! Who agreed on it has a [`FanOutMember`] in the place of a sender. One source, one graph, one
//! path part; one account and one END per member.
//!
//! ```text
//!   JOIN ---> one of this flow runs? -- yes --> its next member
//!                                    '- no ---> provider.open -> source -> a fan-out
//!   ANSWER -> member { base: units fed so far } --> ACCEPT (label of the fan-out, base)
//!   runs while a member is active and in contact      END, REPORT: per member
//!
//!   A came in at port 1 --.
//!   B came in at port 1 --+--> packet --> group, from port 1     A and B take it
//!   C came in at port 2 --'           '-> group, from port 2     C takes it
//! ```
//!
//! A Participant takes what comes from the address that it knows of its Creator, and nothing else;
//! and where that address is in another network, only what goes out there reaches it.
//!
//! Invariants: a fan-out has members and is gone with the last; no member holds up another, but
//! where a module says so (flow control): who is slow loses, who pauses or is silent does not stop
//! the source while another runs; the label is the sender's and the same for all; a graph is not
//! changed; what comes back to it is from a member, of which it is told which, and from nobody
//! else; it is sent no longer from an origin at which nobody takes part any more, unless that is
//! the last.

mod member;
mod set;
#[cfg(test)]
mod tests;

pub(crate) use member::{BACKLOG_BYTES_MAX, FanOutMember, Fed};
pub(crate) use set::FanOuts;

use crate::error::{Code, Error};
use crate::flow::sender::Sender;
use crate::flow::{Context, FlowOut, Lost, ModulesTold};
use crate::ids::Place;
use crate::ready_table::Due;
use crate::schedule::Rank;
use crate::transmit::{ListenerId, Offered};
use dacapo_base::{Address, Time};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::session::FlowOffer;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What a session says of its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The session is active and in contact, and END has not been said.
    pub is_running: bool,
    /// END has not been said.
    pub is_sent_to: bool,
    /// Where the Participant has come in.
    pub origin: Option<ListenerId>,
}

struct Member {
    /// What its answers are told apart by.
    number: u32,
    /// The longest datagrams that its path takes.
    datagram_len_max: usize,
    part: Part,
}

/// A flow that is sent once for several.
pub(crate) struct FanOut {
    /// The session that is served, by name.
    name: String,
    offer: FlowOffer,
    label: u32,
    rank: Rank,
    sender: Box<Sender>,
    members: BTreeMap<Place, Member>,
    /// How many have taken part so far.
    entered: u32,
    /// From where it is sent to the group.
    origins: Vec<ListenerId>,
}

impl FanOut {
    /// One that nobody takes part in yet.
    pub fn new(name: String, offer: FlowOffer, label: u32, sender: Sender) -> Self {
        let (members, entered, origins) = (BTreeMap::new(), 0, Vec::new());
        let (rank, sender) = (Rank::of(&offer), Box::new(sender));
        Self { name, offer, label, rank, sender, members, entered, origins }
    }

    /// Whether who is offered this may take part.
    pub fn may_take(&self, name: &str, offer: &FlowOffer) -> bool {
        self.name == name && self.offer == *offer && self.sender.may_change()
    }

    /// Where it is sent to; none: to the stream of each member.
    pub fn group(&self) -> Option<Address> {
        self.offer.multicast.map(Address::from)
    }

    pub fn label(&self) -> u32 {
        self.label
    }

    /// What it is to flows beside it.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    pub fn sender(&self) -> &Sender {
        &self.sender
    }

    /// What it has fed so far.
    pub fn fed(&self) -> Fed {
        self.sender.fed()
    }

    /// Its source has ended, and END was said.
    pub fn has_ended(&self) -> bool {
        self.sender.awaits_report()
    }

    /// Who takes part.
    pub fn members(&self) -> impl Iterator<Item = Place> {
        self.members.keys().copied()
    }

    /// From where it is sent to the group.
    pub fn origins(&self) -> &[ListenerId] {
        &self.origins
    }

    /// Somebody is to take part.
    pub fn enter(&mut self, place: Place) {
        let part = Part { is_running: false, is_sent_to: false, origin: None };
        self.entered = self.entered.wrapping_add(1);
        let number = self.entered;
        self.members.insert(place, Member { number, datagram_len_max: usize::MAX, part });
    }

    /// The path to a member takes datagrams of this length: units are cut for the shortest.
    pub fn set_len(&mut self, pool: &mut Pool, place: Place, len: usize) {
        let Some(member) = self.members.get_mut(&place) else { return };
        member.datagram_len_max = len;
        let shortest = self.members.values().map(|it| it.datagram_len_max).min().unwrap_or(len);
        if self.sender.datagram_len() != shortest {
            self.sender.set_datagram_len(pool, shortest);
        }
    }

    /// What a session says of its part: it runs while one does.
    pub fn note(&mut self, now: Time, place: Place, part: Part) {
        if let Some(member) = self.members.get_mut(&place) {
            member.part = part;
        }
        self.update(now);
    }

    fn update(&mut self, now: Time) {
        let sent_to = self.members.values().filter(|it| it.part.is_sent_to);
        let origins: BTreeSet<ListenerId> = sent_to.filter_map(|it| it.part.origin).collect();
        if !origins.is_empty() {
            self.origins = origins.into_iter().collect();
        }
        if self.members.values().any(|it| it.part.is_running) {
            self.sender.start(now);
        } else {
            self.sender.stop(now);
        }
    }

    /// Somebody takes part no longer; whether anybody is left.
    pub fn leave(&mut self, now: Time, place: Place) -> bool {
        self.members.remove(&place);
        let is_used = !self.members.is_empty();
        if is_used {
            self.update(now);
        }
        is_used
    }

    /// It cannot be sent from an origin, or from none: those who get nothing any more, when others
    /// still do; `None` when it is over for all.
    pub fn close_origin(&self, local: Option<ListenerId>) -> Option<Vec<Place>> {
        let sent_to = self.members.iter().filter(|(_, it)| it.part.is_sent_to);
        let is_here = |it: &&(&Place, &Member)| local.is_none() || it.1.part.origin == local;
        let (here, others): (Vec<_>, Vec<_>) = sent_to.partition(|it| is_here(&it));
        (!others.is_empty()).then(|| here.into_iter().map(|(place, _)| *place).collect())
    }

    /// It has no way any more, for this reason.
    pub fn lose_way(&mut self, cx: &mut Context<'_>, error: &Error, out: &mut FlowOut) {
        self.sender.lose(cx, Lost::Way, error, out);
    }

    /// Gives a command to its source, when nobody else takes part.
    ///
    /// # Errors
    /// [`Code::Refused`], or what the source says.
    pub fn command(&mut self, now: Time, payload: &[u8]) -> Result<Vec<u8>, Error> {
        let count = self.members.len();
        if count > 1 {
            let text = format!("the flow goes to {count} participants, and would change for all");
            return Err(Error::new(Code::Refused, text));
        }
        self.sender.command(now, payload)
    }

    /// The modules of one who takes part have sent a packet to those of the sender.
    pub fn handle_answer(
        &mut self,
        cx: &mut Context<'_>,
        place: Place,
        packet: Packet,
        out: &mut FlowOut,
    ) {
        // Who was told END may lack some of what was before.
        let Some(member) = self.members.get(&place) else { return cx.pool.free(packet) };
        let (number, epoch) = (member.number, self.sender.current().number);
        // There is one epoch: the graph is not changed.
        self.sender.with_epoch(cx, epoch, out, |runner, _| runner.handle_receiver(number));
        self.sender.handle_packet(cx, epoch, packet, out);
    }

    /// Its modules have nobody to talk to: those who get it are several. It ends when one of them
    /// has panicked.
    pub fn handle_told(&mut self, cx: &mut Context<'_>, told: &ModulesTold, out: &mut FlowOut) {
        for ask in &told.asks {
            let text = "the flow goes to several";
            self.sender.with_epoch(cx, ask.epoch, out, |runner, cx| {
                runner.handle_answer(cx, ask.place, Err(text));
            });
        }
        if let Some(said) = &told.failure {
            let error = Error::new(Code::ModuleFailed, said);
            self.sender.lose(cx, Lost::Graph, &error, out);
        }
    }

    /// Its source may have something again.
    pub fn wake(&mut self, now: Time) {
        self.sender.wake(now);
    }

    /// Takes a unit that the application hands over, past the source: it is copied, for several.
    pub fn offer(&mut self, cx: &mut Context<'_>, unit: &[u8]) -> Offered {
        self.sender.offer(cx, unit, None)
    }

    /// Whether it is worth asking for a packet.
    pub fn may_give(&self, now: Time) -> bool {
        self.sender.may_give(now)
    }

    /// Since when what it would give next has waited; `None` when it has nothing.
    pub fn waits_since(&self, now: Time) -> Option<Time> {
        self.sender.waits_since(now)
    }

    /// The next packet, if there is one that may go now.
    pub fn poll_packet(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) -> Option<Packet> {
        // A group has no path of its own: its bound is what holds it.
        self.sender.poll_packet(cx, usize::MAX, out)
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, cx: &mut Context<'_>, out: &mut FlowOut) {
        self.sender.handle_timeout(cx, Duration::ZERO, out);
    }

    pub fn due(&self, now: Time) -> Due {
        let next = self.sender.next_deadline(now, true);
        if self.sender.may_rest() { Due::resting(next) } else { Due::Now(next) }
    }

    /// Gives everything back; its labels.
    pub fn end(&mut self, cx: &mut Context<'_>) -> Vec<u32> {
        self.sender.flush(cx);
        self.sender.labels()
    }
}
