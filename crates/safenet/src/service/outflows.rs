//! [`Outflows`]: the routes of a host, associations on first use, and how messages end.
//!
//! ```text
//!   send -> admit -> Outflow of the route -> go_on: open, write -> rest when all is done
//!   events of its association -> hear: reports | end: what was under way -> ended
//! ```
//!
//! Invariants: a route has one association at most; every context that is an outflow's leads to its
//! route; one that is made again has cost at least one message its end.

use super::cx::Cx;
use super::{Event, SendError};
use crate::config::{Config, Mode, Reach, Route, Traffic};
use crate::outflow::{Ended, Heard, Loss, Outflow, Waiting};
use crate::ticket::{Cause, Ledger, Outcome, Sums, Ticket};
use crate::wire::{Head, LetGo};
use dacapo_base::Time;
use dacapo_xtp::wire::{Limits, Service};
use dacapo_xtp::{ContextId, Deadlines, End, Open};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// The routes of a host.
#[derive(Debug, Default)]
pub struct Outflows {
    flows: BTreeMap<Route, Outflow>,
    by_context: BTreeMap<ContextId, Route>,
    traffic: BTreeMap<Route, Traffic>,
    ledger: Ledger,
    /// Routes on which every ticket has ended, and when they are given up.
    resting: Deadlines<Route>,
    /// Routes to groups that wait for their pace.
    paced: Deadlines<Route>,
    /// Routes to reliable groups of which members lack messages.
    members_wait: BTreeSet<Route>,
    /// Associations of routes that take no more, and how long their end is waited for.
    closing: Deadlines<ContextId>,
    ended: Ended,
}

impl Outflows {
    /// What has become of all messages that were accepted.
    pub const fn sums(&self) -> &Sums {
        self.ledger.sums()
    }

    /// How many routes there are, with an association or without.
    pub fn count(&self) -> usize {
        self.flows.len()
    }

    /// Any route.
    pub fn first(&self) -> Option<Route> {
        self.flows.keys().next().copied()
    }

    /// Whether none has an association.
    pub fn is_quiet(&self) -> bool {
        self.by_context.is_empty()
    }

    /// The route of an association.
    pub fn route_of(&self, id: ContextId) -> Option<Route> {
        self.by_context.get(&id).copied()
    }

    /// Takes the next end of a message.
    pub fn pop_ended(&mut self) -> Option<(Ticket, Outcome)> {
        self.ended.pop_front()
    }

    /// When [`Outflows::handle_due`] has something to do.
    pub fn deadline(&self) -> Time {
        self.resting.first().min(self.paced.first()).min(self.closing.first())
    }

    /// Does what is due: paced routes go on, resting ones close, and what does not end is given up.
    pub fn handle_due(&mut self, cx: &mut Cx<'_>) {
        while let Some(route) = self.paced.pop_due(cx.now) {
            self.go_on(cx, route);
        }
        while let Some(route) = self.resting.pop_due(cx.now) {
            self.rest(cx, route);
        }
        while let Some(id) = self.closing.pop_due(cx.now) {
            // Its end is told, and settles what was under way.
            let _ = cx.engine.abort(cx.now, id);
        }
    }

    /// Accepts a message.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(
        &mut self,
        cx: &mut Cx<'_>,
        route: Route,
        mode: Mode,
        data: Vec<u8>,
    ) -> Result<Ticket, SendError> {
        self.admit(cx, route, data.len())?;
        let (ticket, claim) = self.ledger.open();
        let is_urgent = mode == Mode::Synchronous;
        let (priority, port) = (route.priority, cx.config.source.port());
        let head = Head { is_urgent, priority, port, len: data.len() as u64 }.emit();
        let outflow = self.flows.entry(route).or_insert_with(|| Outflow::new(route));
        outflow.push(Waiting { claim, head, data });
        self.resting.remove(route);
        self.go_on(cx, route);
        Ok(ticket)
    }

    /// Whether a route has room for a message of `len` bytes; one that is not known yet has.
    pub fn has_capacity(&self, config: &Config, route: Route, len: usize) -> bool {
        let (messages, bytes) = (config.messages_max, config.waiting_bytes_max);
        self.flows.get(&route).is_none_or(|outflow| outflow.has_capacity(len, messages, bytes))
    }

    fn admit(&mut self, cx: &mut Cx<'_>, route: Route, len: usize) -> Result<(), SendError> {
        let config = cx.config;
        let (messages, bytes) = (config.messages_max, config.waiting_bytes_max);
        if self.ended.len() >= messages.max(1) {
            return Err(SendError::Unheard { count: self.ended.len() });
        }
        if let Some(outflow) = self.flows.get_mut(&route) {
            if outflow.has_capacity(len, messages, bytes) {
                return Ok(());
            }
            outflow.wants_capacity =
                Some(outflow.wants_capacity.map_or(len, |other| other.min(len)));
            return Err(SendError::Full { messages, bytes });
        }
        let has_place = self.flows.len() < config.routes_max || self.rest_oldest(cx);
        if has_place { Ok(()) } else { Err(SendError::Routes { count: self.flows.len() }) }
    }

    /// BURST and RATE of a route, from now on and for every association that is made for it.
    ///
    /// # Errors
    /// [`SendError::Routes`]: as many routes have limits as there may be routes.
    pub fn set_traffic(
        &mut self,
        cx: &mut Cx<'_>,
        route: Route,
        traffic: Traffic,
    ) -> Result<(), SendError> {
        let count = self.traffic.len();
        if traffic == Traffic::default() {
            self.traffic.remove(&route);
        } else if count < cx.config.routes_max || self.traffic.contains_key(&route) {
            self.traffic.insert(route, traffic);
        } else {
            return Err(SendError::Routes { count });
        }
        if let Some(id) = self.flows.get(&route).and_then(|outflow| outflow.context) {
            // One that has just ended is made again with these.
            let _ = cx.engine.set_limits(cx.now, id, limits(traffic));
        }
        self.go_on(cx, route);
        Ok(())
    }

    /// Gives up every message of a route: what waits fails, what is under way is unknown.
    pub fn abandon(&mut self, cx: &mut Cx<'_>, route: Route) {
        let loss = Loss { cause: Cause::Closed, is_certain: false, keeps_waiting: false };
        let context = self.flows.get(&route).and_then(|outflow| outflow.context);
        self.lose(route, loss);
        if let Some(id) = context {
            self.cut_off(cx, id);
        }
        self.forget(route);
    }

    /// A route goes on: makes its association when it lacks one, writes, rests when all is done.
    pub fn go_on(&mut self, cx: &mut Cx<'_>, route: Route) {
        let Some(outflow) = self.flows.get_mut(&route) else { return };
        if outflow.context.is_none() && outflow.next_len().is_some() {
            let traffic = self.traffic.get(&route).copied().unwrap_or_default();
            if !self.open(cx, route, traffic) {
                return;
            }
        }
        let Some(outflow) = self.flows.get_mut(&route) else { return };
        if let (Err(_), Some(id)) = (outflow.write(cx.now, cx.engine), outflow.context) {
            // It takes no more, and its end has not been told yet: not for ever.
            self.closing.set_once(id, cx.now + cx.config.leave_max);
        }
        if outflow.awaits_members() {
            self.members_wait.insert(route);
        }
        self.look_for_rest(cx, route);
    }

    /// Ends the messages to reliable groups that all members have. Status of members makes no event
    /// of its own, so this is looked at with every turn in which one waits.
    pub fn look_at_members(&mut self, cx: &mut Cx<'_>) {
        for route in self.members_wait.iter().copied().collect::<Vec<Route>>() {
            let Some(outflow) = self.flows.get_mut(&route).filter(|flow| flow.awaits_members())
            else {
                self.members_wait.remove(&route);
                continue;
            };
            let members = outflow.context.and_then(|id| cx.engine.members(id).ok());
            let (members, before) = (members.unwrap_or_default(), self.ended.len());
            outflow.settle_reached(&members, &mut self.ledger, &mut self.ended);
            if self.ended.len() > before {
                self.go_on(cx, route);
            }
        }
    }

    /// Opens the association of a route; false when that has to wait.
    fn open(&mut self, cx: &mut Cx<'_>, route: Route, traffic: Traffic) -> bool {
        let Some(outflow) = self.flows.get_mut(&route) else { return false };
        if route.reach == Reach::Group {
            let ready_at = outflow.pace.ready_at(traffic);
            if ready_at > cx.now {
                self.paced.set(route, ready_at);
                return false;
            }
            outflow.pace.take(cx.now, traffic, outflow.next_len().unwrap_or(0));
        }
        let open = opening(route, cx.config, traffic);
        let opened = match route.reach {
            Reach::ReliableGroup => cx.engine.open_group(cx.now, &open, &cx.config.group_policy),
            Reach::Host | Reach::Group => cx.engine.open(cx.now, &open),
        };
        match opened {
            Ok(id) => {
                outflow.context = Some(id);
                self.by_context.insert(id, route);
            }
            Err(error) => {
                let cause = Cause::NotOpened(error);
                self.lose(route, Loss { cause, is_certain: true, keeps_waiting: false });
            }
        }
        true
    }

    /// Notes that all is done, and that there is room.
    fn look_for_rest(&mut self, cx: &mut Cx<'_>, route: Route) {
        let config = cx.config;
        let Some(outflow) = self.flows.get_mut(&route) else { return };
        if outflow.is_at_rest() {
            self.resting.set_once(route, cx.now + config.idle_max);
        }
        let (messages, bytes) = (config.messages_max, config.waiting_bytes_max);
        if outflow.wants_capacity.is_some_and(|len| outflow.has_capacity(len, messages, bytes)) {
            outflow.wants_capacity = None;
            cx.tidings.push_back(Event::Capacity(route));
        }
    }

    /// Something has happened to the association of a route.
    pub fn handle_event(&mut self, cx: &mut Cx<'_>, route: Route, event: dacapo_xtp::Event) {
        use dacapo_xtp::Event as E;
        match event {
            E::Opened(_) => {
                if let Some(outflow) = self.flows.get_mut(&route) {
                    outflow.is_opened = true;
                }
            }
            E::Left(_, member, _) => {
                if let Some(outflow) = self.flows.get_mut(&route) {
                    outflow.lose_member(&member);
                }
            }
            E::Readable(id) => self.hear(cx, route, id),
            E::Ended(id, end) => self.end(cx, route, id, end),
            E::Incoming { .. }
            | E::Writable(_)
            | E::Delivered(_)
            | E::Remark(..)
            | E::Joined(..) => {}
        }
        self.go_on(cx, route);
    }

    /// Reports have come. Groups make none.
    fn hear(&mut self, cx: &mut Cx<'_>, route: Route, id: ContextId) {
        let Some(outflow) = self.flows.get_mut(&route) else { return };
        if route.reach != Reach::Host {
            return;
        }
        let (ledger, ended) = (&mut self.ledger, &mut self.ended);
        let heard = outflow.read_reports(cx.now, cx.engine, ledger, ended);
        let (cause, is_certain) = match heard {
            Ok(Heard::Nothing) => return,
            Ok(Heard::LetGo(let_go)) => (Cause::LetGo(let_go), true),
            Ok(Heard::Over) => (Cause::Ended(End::Aborted), false),
            Err(_) => (Cause::Malformed, false),
        };
        // Who only needed the room, or reports no more, takes messages again when they come.
        let keeps_waiting =
            matches!(cause, Cause::LetGo(LetGo::Rested) | Cause::Ended(End::Aborted));
        self.lose(route, Loss { cause, is_certain, keeps_waiting });
        self.by_context.remove(&id);
        self.closing.remove(id);
        cx.close_streams(id);
    }

    /// The association is over; the last reports may still be unread.
    fn end(&mut self, cx: &mut Cx<'_>, route: Route, id: ContextId, end: End) {
        self.hear(cx, route, id);
        let is_settled = !self.by_context.contains_key(&id);
        cx.leaving.remove(id);
        self.cut_off(cx, id);
        let Some(outflow) = self.flows.get_mut(&route).filter(|_| !is_settled) else { return };
        if route.reach == Reach::Group && end == End::Complete {
            return outflow.settle_sent(&mut self.ledger, &mut self.ended);
        }
        let is_refused = matches!(end, End::Refused(..)) || route.reach == Reach::ReliableGroup;
        let is_certain = !outflow.is_opened && is_refused;
        let keeps_waiting = outflow.is_opened;
        self.lose(route, Loss { cause: Cause::Ended(end), is_certain, keeps_waiting });
    }

    fn lose(&mut self, route: Route, loss: Loss) {
        if let Some(outflow) = self.flows.get_mut(&route) {
            outflow.settle_lost(loss, &mut self.ledger, &mut self.ended);
        }
    }

    /// The association is given up at once.
    pub fn cut_off(&mut self, cx: &mut Cx<'_>, id: ContextId) {
        self.by_context.remove(&id);
        self.closing.remove(id);
        cx.release(id);
    }

    /// The route that has rested longest gives its room away; false when none rests.
    fn rest_oldest(&mut self, cx: &mut Cx<'_>) -> bool {
        let oldest = self.resting.pop();
        oldest.inspect(|route| self.rest(cx, *route)).is_some()
    }

    /// Closes the association of a route on which every ticket has ended.
    pub fn rest(&mut self, cx: &mut Cx<'_>, route: Route) {
        let context = self.flows.get(&route).and_then(|outflow| outflow.context);
        self.forget(route);
        if let Some(id) = context {
            self.by_context.remove(&id);
            self.closing.remove(id);
            cx.close_streams(id);
        }
    }

    fn forget(&mut self, route: Route) {
        self.flows.remove(&route);
        self.resting.remove(route);
        self.paced.remove(route);
        self.members_wait.remove(&route);
    }
}

fn limits(traffic: Traffic) -> Limits {
    Limits { out_rate: traffic.rate, out_burst: traffic.burst, ..Limits::default() }
}

fn opening(route: Route, config: &Config, traffic: Traffic) -> Open {
    let destination = SocketAddr::new(route.peer.ip(), route.port);
    let mode = dacapo_xtp::Mode {
        fast_report: true,
        without_check: config.without_check,
        sort: Some(route.priority),
        limits: limits(traffic),
        ..dacapo_xtp::Mode::default()
    };
    Open {
        peer: route.peer,
        ends: Some((destination, config.source)),
        service: service_of(route.reach),
        mode,
    }
}

/// XTP's service of a route.
const fn service_of(reach: Reach) -> Service {
    match reach {
        Reach::Host => Service::Stream,
        Reach::Group => Service::Multicast,
        Reach::ReliableGroup => Service::ReliableMulticast,
    }
}

#[cfg(test)]
mod tests {
    use super::super::cx::tests::{Bench, NOW};
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    const PEER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
    const ROUTE: Route = Route::host(SocketAddr::new(PEER, 4_040), 7);

    fn send(flows: &mut Outflows, bench: &mut Bench, route: Route) -> Result<Ticket, SendError> {
        flows.send(&mut bench.cx(NOW), route, Mode::Asynchronous, vec![7; 10])
    }

    #[test]
    fn an_association_is_made_on_first_use_and_leads_to_its_route() {
        let (mut flows, mut bench) = (Outflows::default(), Bench::new());
        assert!(flows.is_quiet() && flows.has_capacity(&bench.config, ROUTE, usize::MAX));
        assert!(send(&mut flows, &mut bench, ROUTE).is_ok());
        assert!(send(&mut flows, &mut bench, ROUTE).is_ok());
        assert_eq!((flows.count(), bench.engine.context_count()), (1, 1));
        let id = flows.by_context.keys().next().copied().expect("one association");
        assert_eq!((flows.route_of(id), flows.first()), (Some(ROUTE), Some(ROUTE)));
        assert_eq!((flows.sums().accepted, flows.sums().open), (2, 2));
    }

    #[test]
    fn what_is_too_much_is_refused_with_the_limit_and_room_is_told() {
        let (mut flows, mut bench) = (Outflows::default(), Bench::new());
        (bench.config.messages_max, bench.config.routes_max) = (2, 1);
        (0..2).for_each(|_| assert!(send(&mut flows, &mut bench, ROUTE).is_ok()));
        let bytes = bench.config.waiting_bytes_max;
        let full = SendError::Full { messages: 2, bytes };
        assert_eq!(send(&mut flows, &mut bench, ROUTE), Err(full));
        let other = ROUTE.with_priority(1);
        assert_eq!(send(&mut flows, &mut bench, other), Err(SendError::Routes { count: 1 }));
        let traffic = Traffic { rate: 9, burst: 9 };
        let set = |flows: &mut Outflows, bench: &mut Bench, route| {
            flows.set_traffic(&mut bench.cx(NOW), route, traffic)
        };
        assert_eq!(set(&mut flows, &mut bench, other), Ok(()));
        let error = set(&mut flows, &mut bench, ROUTE);
        assert_eq!(error, Err(SendError::Routes { count: 1 }));
        flows.lose(ROUTE, Loss { cause: Cause::Malformed, is_certain: true, keeps_waiting: false });
        flows.go_on(&mut bench.cx(NOW), ROUTE);
        assert_eq!(bench.tidings, [Event::Capacity(ROUTE)]);
        assert_eq!(send(&mut flows, &mut bench, ROUTE), Err(SendError::Unheard { count: 2 }));
        assert!(flows.pop_ended().is_some() && send(&mut flows, &mut bench, ROUTE).is_ok());
    }

    #[test]
    fn what_is_abandoned_ends_and_its_association_is_cut_off() {
        let (mut flows, mut bench) = (Outflows::default(), Bench::new());
        let ticket = send(&mut flows, &mut bench, ROUTE).expect("it is accepted");
        flows.abandon(&mut bench.cx(NOW), ROUTE);
        assert_eq!(flows.pop_ended(), Some((ticket, Outcome::Unknown(Cause::Closed))));
        assert_eq!((flows.pop_ended(), flows.count(), flows.first()), (None, 0, None));
        assert!(flows.is_quiet() && bench.engine.context_count() == 0);
        assert!(flows.sums().closes());
    }

    #[test]
    fn a_route_on_which_all_has_ended_rests_and_gives_its_room_away() {
        let (mut flows, mut bench) = (Outflows::default(), Bench::new());
        bench.config.routes_max = 1;
        assert!(send(&mut flows, &mut bench, ROUTE).is_ok());
        let id = flows.by_context.keys().next().copied().expect("one association");
        let end = dacapo_xtp::Event::Ended(id, End::TimedOut);
        flows.handle_event(&mut bench.cx(NOW), ROUTE, end);
        assert_eq!((flows.route_of(id), flows.deadline()), (None, NOW + bench.config.idle_max));
        assert_eq!(
            flows.pop_ended().map(|it| it.1),
            Some(Outcome::Unknown(Cause::Ended(End::TimedOut)))
        );
        let other = ROUTE.with_priority(1);
        assert!(send(&mut flows, &mut bench, other).is_ok(), "the first rests");
        assert_eq!((flows.count(), flows.first()), (1, Some(other)));
        flows.handle_due(&mut bench.cx(NOW + bench.config.idle_max));
        assert_eq!(flows.count(), 1, "it waits for an answer");
    }
}
