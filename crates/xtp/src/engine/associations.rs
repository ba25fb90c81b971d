//! [`Associations`]: the contexts of a host, who finds them, and what is left when they are over.
//!
//! ```text
//!   packet -> find: directory -> expects? -> take -----------------.
//!   user   -> with --------------------------------------- touch <-+--> wake, tell: turns
//!   time   -> handle_time --------------------------------'   '-- over: bury -> inactive
//!   poll_packet: answers first, then contexts by their turns
//! ```
//!
//! Invariants: a packet whose source is not the association's peer changes nothing; a request with
//! key 0 leaves nothing behind, and its answer is shorter than it is; of a member that has parted
//! what is left is what is left of every association that is over.

use super::answers::Answers;
use super::came::Came;
use super::contexts::Contexts;
use super::directory::Directory;
use super::error::UserError;
use super::inactive::{Gone, Inactive};
use super::turns::Turns;
use crate::config::{Config, Timers};
use crate::context::{Command, Context};
use crate::event::{ContextId, Event};
use crate::group::Leaving;
use crate::members::{Admission, Parted};
use crate::table::{Input, State};
use crate::wire::{Address, Body, Code, Diagnostic, Format, Header, Key, Options, Reason, Writer};
use dacapo_base::{Random, Time};
use std::net::SocketAddr;

/// Why a packet means nothing to the context that it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unexpected {
    /// It comes from another address than its peer's.
    Misdirected,
    /// Nothing of the kind is understood under this key.
    Meaningless,
}

/// The associations of a host.
#[derive(Debug)]
pub struct Associations {
    config: Config,
    contexts: Contexts,
    directory: Directory,
    turns: Turns,
    inactive: Inactive,
    answers: Answers,
}

impl Associations {
    /// None yet.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            contexts: Contexts::new(&config),
            directory: Directory::default(),
            turns: Turns::default(),
            inactive: Inactive::new(config.inactive_max),
            answers: Answers::default(),
        }
    }

    pub const fn config(&self) -> &Config {
        &self.config
    }

    pub const fn contexts(&self) -> &Contexts {
        &self.contexts
    }

    /// Those that are over.
    pub const fn inactive(&self) -> &Inactive {
        &self.inactive
    }

    /// When [`Associations::handle_time`] has something to do.
    pub fn deadline(&self) -> Time {
        self.turns.deadline().min(self.inactive.deadline())
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        self.inactive.handle_time(now);
        while let Some(slot) = self.turns.pop_due(now) {
            self.contexts.with(slot, |context| context.handle_time(now));
            self.touch(now, slot);
        }
    }

    /// Appends the next packet to `into` and gives its destination.
    pub fn poll_packet(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
        if let Some(to) = self.answers.poll(into) {
            return Some(to);
        }
        loop {
            let contexts = &self.contexts;
            let peer_of = |slot| contexts.at(slot).map(|context| context.addressing().peer());
            let slot = self.turns.next(peer_of)?;
            if let Some(Some(to)) = self.contexts.with(slot, |context| context.poll(now, into)) {
                self.touch(now, slot);
                return Some(to);
            }
            self.settle(now, slot);
        }
    }

    /// What goes to somebody outside of any context.
    pub fn answer(&mut self, to: SocketAddr, packet: Vec<u8>) {
        self.answers.push(to, packet);
    }

    /// Whether the network takes packets to this peer.
    pub fn set_capacity(&mut self, now: Time, peer: SocketAddr, has_capacity: bool) {
        if has_capacity {
            self.turns.release(peer).into_iter().for_each(|slot| self.touch(now, slot));
        } else {
            self.turns.hold(peer);
        }
    }

    /// The next thing that a user may want to know.
    pub fn poll_event(&mut self) -> Option<Event> {
        while let Some(slot) = self.turns.pop_told() {
            let event = self.contexts.take_event(slot);
            self.tell(slot);
            if event.is_some() {
                return event;
            }
        }
        None
    }

    /// A key that no context has, and never 0.
    pub fn draw_key(&self, random: &mut Random) -> u64 {
        loop {
            let key = Key::own(random.next_u64()).value();
            if key != 0 && !self.directory.has_key(key) && !self.inactive.has_key(key) {
                return key;
            }
        }
    }

    /// Takes a new context in, where there may be one more.
    pub fn add(&mut self, now: Time, context: Context, listener: Option<u16>) -> Option<ContextId> {
        let id = self.contexts.insert(context, listener)?;
        let context = self.contexts.at(id.slot)?;
        let (role, ends) = (context.role(), context.addressing());
        self.directory.insert(ends.own_key(), id.slot);
        self.directory.learn(ends.peer(), ends.known_as(), id.slot);
        match ends.destination() {
            Some(group) if role.is_transmitter() => self.directory.gather(group, id.slot),
            Some(group) if role.is_member() && ends.known_as().is_none() => {
                self.directory.await_group(group, id.slot);
            }
            _ => {}
        }
        self.touch(now, id.slot);
        Some(id)
    }

    /// Whom a packet is for.
    pub fn find(&mut self, input: Input, came: &Came<'_>) -> Option<u32> {
        let key = came.header.key;
        if key.is_returned() {
            return self.directory.by_key(key.value());
        }
        let known = self.directory.by_peer(came.from, key.value());
        match (input, &came.body) {
            // The transmitter that a request without a key is for, by the address in it.
            (Input::Join, Body::Jcntl(_, segment, _)) if key.value() == 0 => {
                self.directory.transmitter(group_of(segment.address)?)
            }
            (Input::Invitation, Body::First(segment, ..)) => {
                known.or_else(|| self.follow(group_of(segment.address)?, came))
            }
            _ => known,
        }
    }

    /// Who waits to join the group of an invitation; it follows its transmitter from now on.
    fn follow(&mut self, group: SocketAddr, came: &Came<'_>) -> Option<u32> {
        let Self { contexts, directory, .. } = self;
        let is_meant =
            |slot| contexts.at(slot).is_some_and(|context| context.role().admits(came.from));
        let slot = directory.take_waiting(group, is_meant)?;
        self.contexts.with(slot, |context| context.follow(came.from, &came.header));
        self.directory.learn(came.from, Some(came.header.key.value()), slot);
        Some(slot)
    }

    /// The state of the context that a packet is for, and whether it is asked to let somebody join.
    ///
    /// # Errors
    /// [`Unexpected`].
    pub fn meet(
        &self,
        slot: u32,
        input: Input,
        came: &Came<'_>,
    ) -> Result<(State, bool), Unexpected> {
        let context = self.contexts.at(slot).ok_or(Unexpected::Meaningless)?;
        let (role, ends, key) = (context.role(), context.addressing(), came.header.key);
        if !role.expects(ends, key, came.from) {
            return Err(Unexpected::Misdirected);
        }
        if !role.understands(ends, input, key) {
            return Err(Unexpected::Meaningless);
        }
        let is_request = input == Input::Join && role.is_transmitter();
        Ok((context.lifecycle().state(), is_request))
    }

    /// Whether an association that is over answers such a packet.
    pub fn is_over(&self, from: SocketAddr, header: &Header) -> bool {
        let gone = self.inactive.find(from, header.key);
        // Anybody may ask to join a group, also one that is over.
        gone.is_some_and(|gone| gone.peer == from || header.format == Format::Jcntl)
    }

    /// Answers a packet of an association that is over.
    pub fn answer_late(&mut self, from: SocketAddr, header: &Header) {
        let is_multi = header.options.has(Options::MULTI);
        // What went to a whole group is answered by nobody; what goes to one member has its key.
        if is_multi && !header.key.is_returned() {
            return;
        }
        let Some(gone) = self.inactive.find(from, header.key) else { return };
        let packet = gone.end(header.sync, Options::MULTI.when(is_multi));
        self.answers.push(from, packet);
    }

    /// A context takes a packet; returns how many with a tag were lost for want of room.
    pub fn take(&mut self, now: Time, slot: u32, came: &Came<'_>) -> u64 {
        let Came { header, body, len, .. } = came;
        let refused = self.contexts.with_left(slot, |context, left| {
            let known_as = context.addressing().known_as();
            let refused = context.take(now, header, body, (*len, left));
            let ends = context.addressing();
            if ends.known_as() != known_as {
                self.directory.learn(ends.peer(), ends.known_as(), slot);
            }
            refused
        });
        self.touch(now, slot);
        refused.unwrap_or(0)
    }

    /// A JCNTL has come for a transmitter; `drawn` is a key for who asks.
    pub fn take_join(&mut self, now: Time, slot: u32, came: &Came<'_>, drawn: u64) -> Admission {
        let Body::Jcntl(asks, _, traffic) = &came.body else { return Admission::Known };
        let asks = (asks, traffic.limits);
        let join =
            |context: &mut Context| context.take_join(now, came.from, &came.header, asks, drawn);
        let admission = self.contexts.with(slot, join).unwrap_or(Admission::Known);
        if admission == Admission::Offered {
            self.directory.insert(drawn, slot);
        }
        self.touch(now, slot);
        admission
    }

    /// FIRST to who has asked for it.
    pub fn invite(&mut self, slot: u32, to: SocketAddr) {
        let mut packet = Vec::new();
        let context = self.contexts.at(slot);
        if context.is_some_and(|context| context.composer().invitation(&mut packet)) {
            self.answers.push(to, packet);
        }
    }

    /// Does something to a context, and looks what it has to send and to tell then.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn with<R>(
        &mut self,
        now: Time,
        id: ContextId,
        act: impl FnOnce(&mut Context) -> R,
    ) -> Result<R, UserError> {
        self.contexts.of(id)?;
        let result = self.contexts.with(id.slot, act).ok_or(UserError::Released)?;
        self.touch(now, id.slot);
        Ok(result)
    }

    /// Does what the user of a context wants.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn command(&mut self, now: Time, id: ContextId, command: Command) -> Result<(), UserError> {
        self.with(now, id, |context| context.handle_command(now, command))
    }

    /// Forgets a context; one that has not ended is given up. Returns the port of the listener that
    /// has not told of it yet.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn release(&mut self, now: Time, id: ContextId) -> Result<Option<u16>, UserError> {
        let peer = self.contexts.of(id)?.addressing().peer();
        let mut last = Vec::new();
        let has_one = self.contexts.with(id.slot, |context| {
            context.handle_command(now, Command::Abort);
            context.lifecycle().is_end_due() && context.say_end(&mut last)
        });
        if has_one == Some(true) {
            self.answers.push(peer, last);
        }
        self.bury(now, id.slot);
        self.turns.forget(id.slot);
        Ok(self.contexts.remove(id.slot))
    }

    /// Something has happened to a context: it may have packets and events.
    fn touch(&mut self, now: Time, slot: u32) {
        let is_transmitter = self.contexts.with(slot, |context| {
            context.check_over();
            context.role().is_transmitter()
        });
        if is_transmitter == Some(true) {
            self.bury_parted(now, slot);
        }
        let Some(context) = self.contexts.at(slot) else { return };
        if context.lifecycle().state() == State::Inactive {
            return self.bury(now, slot);
        }
        let (sort, has_events) = (context.terms().sort(), context.lifecycle().has_events());
        self.turns.wake(slot, sort);
        if has_events {
            self.turns.tell(slot, sort);
        }
    }

    /// A context has nothing to send now: sets its timer, and has its events told.
    fn settle(&mut self, now: Time, slot: u32) {
        let Some(context) = self.contexts.at(slot) else {
            return self.turns.rest(slot, Time::NEVER);
        };
        if context.lifecycle().state() == State::Inactive {
            return self.bury(now, slot);
        }
        self.turns.rest(slot, context.deadline());
        self.tell(slot);
    }

    fn tell(&mut self, slot: u32) {
        let Some(context) = self.contexts.at(slot) else { return };
        if context.lifecycle().has_events() {
            self.turns.tell(slot, context.terms().sort());
        }
    }

    /// The association is over: from now on only late packets are answered.
    fn bury(&mut self, now: Time, slot: u32) {
        self.bury_parted(now, slot);
        let Some(context) = self.contexts.at(slot) else { return };
        let (ends, gone) = (context.addressing(), Gone::of(context));
        if let Some(group) = ends.destination().filter(|_| context.role().is_in_group()) {
            self.directory.leave_group(group, slot);
        }
        let alias = gone.known_as.map(|key| (gone.peer, key));
        self.contexts.with(slot, Context::let_go);
        if self.directory.forget(gone.own_key, alias, slot) {
            self.keep(now, slot, gone);
        }
        self.turns.rest(slot, Time::NEVER);
        self.tell(slot);
    }

    /// Keeps what is left of an association for as long as its peer may ask.
    fn keep(&mut self, now: Time, slot: u32, gone: Gone) {
        let Some(context) = self.contexts.at(slot) else { return };
        let Timers { inactive_min, give_up, .. } = self.config.timers;
        let wait = context.composer().requests.timeout() * 2;
        self.inactive.insert(now + wait.max(inactive_min).min(give_up), gone);
    }

    /// Keys of those who are no members any more lead to what answers late packets.
    fn bury_parted(&mut self, now: Time, slot: u32) {
        while let Some(Some(parted)) = self.contexts.with(slot, Context::pop_parted) {
            self.directory.remove(parted.offered);
            let Parted { address, how: Some(how), has_said_end, .. } = parted else { continue };
            let gone = Gone::of_member(&parted, how);
            self.keep(now, slot, gone);
            match how {
                Leaving::Silent | Leaving::Slow => {
                    self.answers.push(address, abandon(gone.key, how));
                }
                Leaving::Complete | Leaving::Left if !has_said_end => {
                    self.answers.push(address, gone.end(0, Options::MULTI));
                }
                _ => {}
            }
        }
    }
}

/// The group that a packet names.
const fn group_of(address: Address) -> Option<SocketAddr> {
    match address {
        Address::Internet { destination, .. } => Some(destination),
        Address::Null => None,
    }
}

/// DIAG 2 to a member that is dropped.
fn abandon(key: Key, how: Leaving) -> Vec<u8> {
    let is_slow = how == Leaving::Slow;
    let reason = if is_slow { Reason::NO_RESOURCE } else { Reason::UNSPECIFIED };
    let message = how.to_string();
    let (code, message) = (Code::CONTEXT_ABANDONED, message.as_bytes());
    let header = Header { options: Options::MULTI, ..Header::new(key, Format::Diag) };
    let mut packet = Vec::new();
    // A diagnostic of ours is never too long.
    let _ = Writer::packet(&header, &Body::Diag(Diagnostic { code, reason, message }), &mut packet);
    packet
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Open;
    use crate::wire::{Control, Frame, Payload};

    fn at(end: u8) -> SocketAddr {
        ([192, 0, 2, end], 4_040).into()
    }

    /// A context that has been opened to each of these, under keys from 7 on.
    fn opened(ends: &[u8]) -> (Associations, Vec<ContextId>) {
        let mut associations = Associations::new(Config::default());
        let open = |(key, end): (u64, &u8)| {
            let open = Open::stream(at(*end), at(*end), at(9));
            let config = *associations.config();
            let context = Context::opening(Time::ZERO, &config, &open, None, (key, 0));
            associations.add(Time::ZERO, context, None).unwrap()
        };
        let ids = (7..).zip(ends).map(open).collect();
        (associations, ids)
    }

    fn came(from: SocketAddr, key: Key, format: Format) -> Came<'static> {
        let body = match format {
            Format::Data => Body::Data(Payload::default()),
            _ => Body::Cntl(Control::default()),
        };
        Came { from, header: Header::new(key, format), body, len: 64 }
    }

    fn sent(associations: &mut Associations) -> Vec<(SocketAddr, Header)> {
        let mut packet = Vec::new();
        std::iter::from_fn(|| {
            packet.clear();
            let to = associations.poll_packet(Time::ZERO, &mut packet)?;
            Some((to, Frame::open(&packet).unwrap().header))
        })
        .collect()
    }

    /// Invariant: what does not come from the association's peer changes nothing.
    #[test]
    fn a_packet_is_met_by_the_context_of_its_key_from_its_peer_only() {
        let (mut associations, _) = opened(&[1, 2]);
        let status = came(at(1), Key::returned(7), Format::Cntl);
        let slot = associations.find(Input::Status, &status).unwrap();
        let met = associations.meet(slot, Input::Status, &status);
        assert_eq!(met, Ok((State::Opening, false)));
        let strange = came(at(2), Key::returned(7), Format::Cntl);
        let met = associations.meet(slot, Input::Status, &strange);
        assert_eq!(met, Err(Unexpected::Misdirected));
        let met = associations.meet(slot, Input::Join, &status);
        assert_eq!(met, Err(Unexpected::Meaningless), "it is in no group");
        let unknown = came(at(1), Key::own(7), Format::Data);
        assert_eq!(associations.find(Input::Data, &unknown), None, "the peer's own is not known");
        assert_eq!(associations.take(Time::ZERO, slot, &status), 0);
        assert_eq!(associations.meet(slot, Input::Status, &status), Ok((State::Open, false)));
    }

    /// A peer to which the network takes nothing holds up its own associations only.
    #[test]
    fn who_waits_for_the_network_sends_when_it_takes_packets_again() {
        let (mut associations, _) = opened(&[1, 2]);
        associations.set_capacity(Time::ZERO, at(1), false);
        let to = |sent: Vec<(SocketAddr, Header)>| sent.into_iter().map(|it| it.0);
        assert!(to(sent(&mut associations)).eq([at(2)]));
        associations.set_capacity(Time::ZERO, at(1), true);
        assert!(to(sent(&mut associations)).eq([at(1)]));
        assert!(associations.deadline() < Time::NEVER, "an answer is waited for");
    }

    /// END: said once by who is released, and again to who asks later; never to a group.
    #[test]
    fn who_is_released_says_end_and_late_packets_are_answered() {
        let (mut associations, ids) = opened(&[1]);
        sent(&mut associations);
        assert_eq!(associations.release(Time::ZERO, ids[0]), Ok(None));
        assert_eq!(associations.release(Time::ZERO, ids[0]), Err(UserError::Released));
        let ends = |sent: Vec<(SocketAddr, Header)>| {
            sent.iter().map(|(to, said)| (*to, said.options.has(Options::END))).collect::<Vec<_>>()
        };
        assert_eq!(ends(sent(&mut associations)), [(at(1), true)]);
        let late = Header { sync: 5, ..Header::new(Key::returned(7), Format::Data) };
        assert!(associations.is_over(at(1), &late) && !associations.is_over(at(2), &late));
        associations.answer_late(at(1), &late);
        assert_eq!(ends(sent(&mut associations)), [(at(1), true)]);
        let key = Key::own(7);
        associations.answer_late(at(1), &Header { options: Options::MULTI, key, ..late });
        assert!(sent(&mut associations).is_empty() && associations.contexts().count() == 0);
        associations.handle_time(Time::from_millis(3_600_000));
        assert!(!associations.is_over(at(1), &late));
    }
}
