//! [`FanOuts`]: the fan-outs of a core.

use super::{FanOut, Fed, Part};
use crate::effect::{Effect, Out};
use crate::error::{Code, Error};
use crate::flow::epoch::TxEpoch;
use crate::flow::sender::Sender;
use crate::flow::{Context, FlowOut, FlowParams};
use crate::ids::{FanOutId, PeerId, Place};
use crate::labels::Target;
use crate::port::Source;
use crate::ready_table::ReadyTable;
use crate::schedule::{Asked, Turn};
use crate::shared::Shared;
use crate::transmit::Offered;
use dacapo_base::{Address, Time};
use dacapo_packet::{Packet, Pool};
use dacapo_wire::session::FlowOffer;

/// The owner of labels that are for no peer; none gets this number.
const NOBODY: PeerId = PeerId(0);

#[derive(Default)]
pub(crate) struct FanOuts {
    all: ReadyTable<FanOutId, FanOut>,
    /// Those that go to the streams of their members.
    over_streams: Vec<FanOutId>,
    /// One may have something to send, or it was not asked since this was cleared.
    may_give: bool,
}

impl FanOuts {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    pub fn get(&self, id: FanOutId) -> Option<&FanOut> {
        self.all.get(id)
    }

    /// One of this flow that runs.
    pub fn running(&self, name: &str, offer: &FlowOffer) -> Option<FanOutId> {
        self.all.iter().find(|(_, it)| it.may_take(name, offer)).map(|(id, _)| id)
    }

    /// A flow is sent for several from now on.
    ///
    /// # Errors
    /// [`Code::TooMany`] labels, or a graph that cannot be built.
    pub fn begin(
        &mut self,
        now: Time,
        shared: &mut Shared,
        name: String,
        offer: FlowOffer,
        source: Box<dyn Source>,
    ) -> Result<FanOutId, Error> {
        let (len, unit_len_max) = (usize::from(offer.datagram_len), offer.unit_len_max as usize);
        let built = shared.graphs.build(&offer.graph, len, unit_len_max)?;
        let id = FanOutId(shared.fresh_id());
        let target = Target { session: id.0, flow: Target::FAN_OUT, epoch: 0 };
        let label = shared.allot(now, target, NOBODY);
        let too_many = || Error::new(Code::TooMany, "labels, for flows to groups or in all");
        let label = label.ok_or_else(too_many)?;
        let params = FlowParams { id: offer.flow, unit_len_max, digest: offer.digest };
        let pace = shared.graphs.pace(&offer, false);
        let epoch = TxEpoch::new(0, built, label);
        let mut sender = Sender::new(now, params, source, epoch, pace, shared.queues);
        sender.set_label_tx(label);
        if offer.multicast.is_none() {
            self.over_streams.push(id);
        }
        self.all.insert(id, FanOut::new(name, offer, label, sender));
        Ok(id)
    }

    /// Somebody is to take part.
    pub fn enter(&mut self, id: FanOutId, place: Place) {
        self.all.with(id, |it| it.enter(place));
    }

    /// What one has fed, and its label.
    pub fn fed(&self, id: FanOutId) -> Option<(Fed, u32)> {
        self.get(id).map(|it| (it.fed(), it.label()))
    }

    /// The path to a member takes datagrams of this length.
    pub fn set_len(&mut self, pool: &mut Pool, id: FanOutId, place: Place, len: usize) {
        self.may_give = true;
        self.all.with(id, |it| it.set_len(pool, place, len));
    }

    /// What a session says of its part.
    pub fn note(&mut self, now: Time, id: FanOutId, place: Place, part: Part) {
        self.may_give = true;
        self.all.with(id, |it| it.note(now, place, part));
    }

    /// Somebody takes part no longer; one that nobody is left of is over.
    pub fn leave(
        &mut self,
        now: Time,
        shared: &mut Shared,
        id: FanOutId,
        place: Place,
        out: &mut Out,
    ) {
        if self.all.with(id, |it| it.leave(now, place)) != Some(false) {
            return;
        }
        let Some(mut gone) = self.all.remove(id) else { return };
        self.over_streams.retain(|it| *it != id);
        let labels = gone.end(&mut shared.flow(now));
        labels.into_iter().for_each(|label| shared.labels.retire(now, label));
        let unused = gone.group().filter(|group| self.to_group(*group).next().is_none());
        unused.into_iter().for_each(|group| out.push(Effect::CloseData(group)));
    }

    /// Those that are sent to a group.
    pub fn to_group(&self, group: Address) -> impl Iterator<Item = FanOutId> {
        self.all.iter().filter(move |(_, it)| it.group() == Some(group)).map(|(id, _)| id)
    }

    /// A command for the source of one.
    ///
    /// # Errors
    /// See [`FanOut::command`].
    pub fn command(&mut self, now: Time, id: FanOutId, payload: &[u8]) -> Result<Vec<u8>, Error> {
        self.may_give = true;
        let gone = || Err(Error::new(Code::NoSuchThing, "the flow to the group is gone"));
        self.all.with(id, |it| it.command(now, payload)).unwrap_or_else(gone)
    }

    /// Runs `body` over one; what that tells goes out.
    pub fn with<R>(
        &mut self,
        id: FanOutId,
        out: &mut Out,
        body: impl FnOnce(&mut FanOut, &mut FlowOut) -> R,
    ) -> Option<R> {
        self.may_give = true;
        let mut told = FlowOut::default();
        let result = self.all.with(id, |it| body(it, &mut told));
        tell(id, told, out);
        result
    }

    /// Asks one that is awake for its next packet, and touches it, if it may have one.
    pub fn poll_packet(
        &mut self,
        cx: &mut Context<'_>,
        id: FanOutId,
        out: &mut Out,
    ) -> Option<Option<Packet>> {
        let mut told = FlowOut::default();
        let packet = self.all.ask(id, |it, is_touched| {
            if !it.may_give(cx.now) {
                return None;
            }
            *is_touched = true;
            Some(it.poll_packet(cx, &mut told))
        });
        tell(id, told, out);
        packet.flatten()
    }

    /// The source of one may have something again.
    pub fn wake_source(&mut self, now: Time, id: FanOutId) {
        self.may_give = true;
        self.all.with(id, |it| it.wake(now));
    }

    /// Hands a unit over to one, past its source.
    pub fn offer(&mut self, cx: &mut Context<'_>, id: FanOutId, unit: &[u8]) -> Option<Offered> {
        self.may_give = true;
        self.all.with(id, |it| it.offer(cx, unit))
    }

    /// Whether one may have something to send that was not asked since this was cleared; those
    /// over streams are asked each time.
    pub fn may_give(&self) -> bool {
        self.may_give || self.is_changed() || !self.over_streams.is_empty()
    }

    pub fn set_may_give(&mut self, may_give: bool) {
        self.may_give = may_give;
    }

    /// Looks at those that are awake; how many they are.
    pub fn handle_timeout(&mut self, now: Time, shared: &mut Shared, out: &mut Out) -> usize {
        if self.all.len() == 0 {
            return 0;
        }
        self.wake_due(now);
        let ids: Vec<FanOutId> = self.all.awake().collect();
        for &id in &ids {
            let was_touched = self.all.take_touched(id);
            self.with(id, out, |it, told| it.handle_timeout(&mut shared.flow(now), told));
            self.all.set_touched(id, was_touched);
        }
        ids.len()
    }

    pub fn next_deadline(&mut self, now: Time, keep: bool) -> Option<Time> {
        if self.all.len() == 0 {
            return None;
        }
        self.all.file(keep, |_, it| it.due(now))
    }

    pub fn wake_due(&mut self, now: Time) {
        self.may_give |= self.all.wake_due(now);
    }

    /// For tests: from now on who rests is not woken by time.
    pub fn forget_due(&mut self) {
        self.all.forget_due();
    }

    /// Wakes all, for tests.
    pub fn wake_all(&mut self) {
        self.all.wake_all();
    }

    pub fn is_changed(&self) -> bool {
        self.all.is_changed()
    }

    pub fn take_changed(&mut self) -> bool {
        self.all.take_changed()
    }

    /// Those to groups that are awake, in order.
    pub fn turns(&self) -> impl Iterator<Item = Turn> {
        let awake = self.all.awake().filter_map(|id| Some((id, self.get(id)?)));
        let to_group = awake.filter(|(_, it)| it.group().is_some());
        to_group.map(|(id, it)| Turn { rank: it.rank(), asked: Asked::FanOut(id) })
    }

    /// Those that go to streams, awake or not.
    pub fn over_streams(&self) -> &[FanOutId] {
        &self.over_streams
    }

    pub fn is_awake(&self, id: FanOutId) -> bool {
        self.all.is_awake(id)
    }
}

/// What one tells goes out.
fn tell(id: FanOutId, told: FlowOut, out: &mut Out) {
    if !told.is_empty() {
        out.push(Effect::FanOut(id, told));
    }
}
