//! [`PeerLink`]: the control connection to a peer: attempts, the greeting, the hub and its lists.
//!
//! Invariants: while there is no connection in use attempts are made, at most [`ATTEMPTS_MAX`] at a
//! time; at most [`LISTS_MAX`] lists are waited for.

use super::dialing::{DialParams, Dialing};
use super::not_listening;
use crate::control::ConnId;
use crate::error::{Code, Error};
use crate::session::table::HubState;
use dacapo_base::{Address, Time, earlier};
use quinn_proto::StreamId;
use std::time::Duration;

/// A further attempt begins after this time.
const ATTEMPT_EVERY: Duration = Duration::from_millis(500);

/// Who comes in has greeted by this time.
const GREETING_MAX: Duration = Duration::from_secs(10);

/// The most attempts at a time; 20 begin in ten seconds.
const ATTEMPTS_MAX: usize = 20;

/// While contact is lost the dialer begins a further connection after this time, and lets so many
/// go on.
const RETRY_EVERY: Duration = Duration::from_secs(1);
const RETRIES_MAX: usize = 3;

/// The most lists that are waited for.
const LISTS_MAX: usize = 16;

pub(super) struct PeerLink {
    state: HubState,
    /// The connection in use; `None` while dialing.
    conn: Option<ConnId>,
    hub: Option<StreamId>,
    /// Connections that are being tried.
    attempts: Vec<ConnId>,
    next_attempt: Time,
    /// When the greeting must be over.
    deadline: Option<Time>,
    /// What refusals are worth while it is dialed.
    dialing: Dialing,
    /// Why the last attempt failed, for the report.
    last_failure: String,
    /// Which start of its program the peer said it is.
    instance: [u8; 16],
    /// Listings that are waited for.
    lists: Vec<(Time, u32)>,
}

impl PeerLink {
    pub fn dialed(now: Time, params: DialParams) -> Self {
        Self::new(now, None, now + params.most(), Dialing::new(params))
    }

    pub fn came_in(now: Time, conn: ConnId) -> Self {
        Self::new(now, Some(conn), now + GREETING_MAX, Dialing::default())
    }

    fn new(now: Time, conn: Option<ConnId>, deadline: Time, dialing: Dialing) -> Self {
        Self {
            state: HubState::Greeting,
            conn,
            hub: None,
            attempts: Vec::new(),
            next_attempt: now,
            deadline: Some(deadline),
            dialing,
            last_failure: String::new(),
            instance: [0; 16],
            lists: Vec::new(),
        }
    }

    pub fn state(&self) -> HubState {
        self.state
    }

    pub fn conn(&self) -> Option<ConnId> {
        self.conn
    }

    /// The connection, when the greeting is over.
    pub fn open_conn(&self) -> Option<ConnId> {
        self.conn.filter(|_| self.state == HubState::Open)
    }

    /// Where the hub is.
    pub fn hub(&self) -> Option<(ConnId, StreamId)> {
        self.conn.zip(self.hub)
    }

    pub fn set_hub(&mut self, hub: StreamId) {
        self.hub = Some(hub);
    }

    /// Every connection there is.
    pub fn conns(&self) -> impl Iterator<Item = ConnId> {
        self.conn.into_iter().chain(self.attempts.iter().copied())
    }

    pub fn next_attempt(&self) -> Time {
        self.next_attempt
    }

    /// When something of it is due.
    pub fn due(&self) -> Option<Time> {
        let attempt = self.conn.is_none().then_some(self.next_attempt);
        let list = self.lists.iter().map(|(at, _)| *at).min();
        earlier(earlier(self.deadline, attempt), list)
    }

    /// Somebody else dials it too, and may wait longer.
    pub fn join_dialing(&mut self, now: Time, params: DialParams) {
        self.dialing.join(params);
        self.deadline = self.deadline.map(|at| at.max(now + params.most()));
    }

    /// A further attempt is due; whether it may be made.
    pub fn begin_attempt(&mut self, now: Time) -> bool {
        self.next_attempt = now + ATTEMPT_EVERY;
        self.attempts.len() < ATTEMPTS_MAX
    }

    pub fn is_attempt_due(&self, now: Time) -> bool {
        self.conn.is_none() && self.next_attempt <= now
    }

    pub fn add_attempt(&mut self, conn: ConnId) {
        self.attempts.push(conn);
    }

    pub fn remove_attempt(&mut self, conn: ConnId) {
        self.attempts.retain(|attempt| *attempt != conn);
    }

    /// Contact is lost: other connections are tried from now on.
    pub fn begin_retries(&mut self, now: Time) {
        self.next_attempt = now;
    }

    /// While contact is lost: whether a further connection is due, and which goes for it.
    pub fn retry(&mut self, now: Time) -> Option<Option<ConnId>> {
        if self.next_attempt > now {
            return None;
        }
        let oldest = (self.attempts.len() >= RETRIES_MAX).then(|| self.attempts.remove(0));
        Some(oldest)
    }

    /// The next one after that.
    pub fn note_retry(&mut self, now: Time) {
        self.next_attempt = now + RETRY_EVERY;
    }

    /// What is tried is not needed.
    pub fn take_attempts(&mut self) -> Vec<ConnId> {
        std::mem::take(&mut self.attempts)
    }

    /// The first attempt that is welcomed is used; the others.
    pub fn choose(&mut self, conn: ConnId, hub: StreamId) -> Vec<ConnId> {
        (self.conn, self.hub) = (Some(conn), Some(hub));
        let mut others = self.take_attempts();
        others.retain(|attempt| *attempt != conn);
        others
    }

    /// The greeting is over.
    pub fn open(&mut self, instance: [u8; 16]) {
        (self.state, self.deadline, self.instance) = (HubState::Open, None, instance);
    }

    /// Which start of its program the peer said it is.
    pub fn instance(&self) -> [u8; 16] {
        self.instance
    }

    /// A connection is gone: why the peer is, if that was the one in use, or it has refused.
    pub fn handle_lost(
        &mut self,
        conn: ConnId,
        remote: Address,
        reason: &str,
        said: Option<Code>,
    ) -> Option<Error> {
        self.remove_attempt(conn);
        let refused = self.conn.is_none() && said.is_some();
        if self.conn == Some(conn) || refused {
            let is_open = self.open_conn().is_some();
            let unsaid = if is_open { Code::Closed } else { Code::Unreachable };
            return Some(Error::new(said.unwrap_or(unsaid), format!("{remote}: {reason}")));
        }
        if self.conn.is_none() {
            // Further attempts are due; the last failure is reported if none gets through.
            reason.clone_into(&mut self.last_failure);
        }
        None
    }

    /// Something has come that only the peer, or who sees what goes to it, can have sent.
    pub fn handle_heard(&mut self) {
        self.dialing.handle_heard();
    }

    /// The network says that nothing listens there; true when that is to be believed.
    pub fn handle_refused(&mut self, now: Time, remote: Address) -> bool {
        self.conn.is_none() && self.dialing.handle_refused(now, remote)
    }

    /// Why a peer is given up, when its time to greet is over.
    pub fn not_answered(&self, now: Time, remote: Address) -> Option<Error> {
        self.deadline.filter(|deadline| *deadline <= now)?;
        if self.dialing.is_refused() {
            return Some(not_listening(remote));
        }
        let secs = self.dialing.most().as_secs_f64();
        let text = match self.last_failure.as_str() {
            "" => format!(
                "{remote}: no answer in {secs} s; is a dacapo serving there, and does UDP get \
                 through?"
            ),
            failure => format!("{remote}: {failure}"),
        };
        Some(Error::new(Code::Unreachable, text))
    }

    /// A list is waited for until then.
    ///
    /// # Errors
    /// [`Code::TooMany`] are.
    pub fn await_list(&mut self, until: Time, request: u32) -> Result<(), Error> {
        if self.lists.len() >= LISTS_MAX {
            return Err(Error::new(Code::TooMany, "lists are waited for"));
        }
        self.lists.push((until, request));
        Ok(())
    }

    /// A list has come; whether it was waited for.
    pub fn take_list(&mut self, request: u32) -> bool {
        let before = self.lists.len();
        self.lists.retain(|(_, waits)| *waits != request);
        self.lists.len() != before
    }

    /// How many lists were waited for until now.
    pub fn expire_lists(&mut self, now: Time) -> usize {
        let before = self.lists.len();
        self.lists.retain(|(deadline, _)| *deadline > now);
        before - self.lists.len()
    }

    pub fn list_count(&self) -> usize {
        self.lists.len()
    }

    /// This time does not count.
    pub fn shift(&mut self, by: Duration) {
        self.deadline = self.deadline.map(|at| at + by);
        self.lists.iter_mut().for_each(|(at, _)| *at += by);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quinn_proto::{Dir, Side};

    fn at(secs: u64) -> Time {
        Time::ZERO + Duration::from_secs(secs)
    }

    fn remote() -> Address {
        "192.0.2.7:19980".parse().unwrap()
    }

    fn dialed() -> PeerLink {
        PeerLink::dialed(Time::ZERO, DialParams::default())
    }

    fn hub() -> StreamId {
        StreamId::new(Side::Client, Dir::Bi, 0)
    }

    #[test]
    fn attempts_are_made_until_one_is_welcomed() {
        let mut link = dialed();
        assert!(link.is_attempt_due(Time::ZERO));
        for number in 0..ATTEMPTS_MAX as u64 {
            assert!(link.begin_attempt(at(number)));
            link.add_attempt(ConnId(number));
        }
        assert!(!link.begin_attempt(at(30)), "so many go on already");
        assert!(!link.is_attempt_due(at(30)), "the next is asked about later");
        let others = link.choose(ConnId(3), hub());
        assert_eq!(others.len(), ATTEMPTS_MAX - 1);
        assert!(!others.contains(&ConnId(3)) && !link.is_attempt_due(at(60)));
        assert_eq!(link.hub(), Some((ConnId(3), hub())));
        assert_eq!(link.open_conn(), None, "the greeting is not over");
        link.open([7; 16]);
        assert_eq!((link.open_conn(), link.due()), (Some(ConnId(3)), None));
    }

    #[test]
    fn who_has_not_greeted_in_time_is_given_up_for_the_last_reason() {
        let mut link = dialed();
        assert!(link.not_answered(at(9), remote()).is_none());
        let error = link.not_answered(at(10), remote()).unwrap();
        assert!(error.text.contains("no answer in 10 s"), "{error}");
        assert!(link.handle_lost(ConnId(1), remote(), "no route", None).is_none());
        let error = link.not_answered(at(10), remote()).unwrap();
        assert_eq!(error.text, "192.0.2.7:19980: no route");
        link.shift(Duration::from_secs(5));
        assert!(link.not_answered(at(14), remote()).is_none(), "that time does not count");
        link.open([0; 16]);
        assert!(link.not_answered(at(99), remote()).is_none());
    }

    #[test]
    fn a_peer_goes_with_its_connection_or_when_it_refuses() {
        let mut link = dialed();
        let said = link.handle_lost(ConnId(1), remote(), "go away", Some(Code::TooMany));
        assert_eq!(said.unwrap().code, Code::TooMany);
        link.choose(ConnId(2), hub());
        assert!(link.handle_lost(ConnId(3), remote(), "", Some(Code::Closed)).is_none());
        let lost = |link: &mut PeerLink| link.handle_lost(ConnId(2), remote(), "", None);
        assert_eq!(lost(&mut link).unwrap().code, Code::Unreachable);
        link.open([0; 16]);
        assert_eq!(lost(&mut link).unwrap().code, Code::Closed);
    }

    #[test]
    fn lists_are_waited_for_in_number_and_time() {
        let mut link = PeerLink::came_in(Time::ZERO, ConnId(1));
        link.open([0; 16]);
        for number in 0..LISTS_MAX as u32 {
            link.await_list(at(u64::from(number)), number).unwrap();
        }
        assert_eq!(link.await_list(at(1), 99).unwrap_err().code, Code::TooMany);
        assert!(link.take_list(4) && !link.take_list(4) && !link.take_list(99));
        assert_eq!(link.due(), Some(at(0)));
        assert_eq!(link.expire_lists(at(5)), 5);
        assert_eq!(link.list_count(), LISTS_MAX - 6);
    }

    #[test]
    fn while_contact_is_lost_three_connections_are_tried_and_the_oldest_goes() {
        let mut link = PeerLink::came_in(Time::ZERO, ConnId(9));
        link.begin_retries(at(1));
        for number in 0..3 {
            assert_eq!(link.retry(at(1 + number)), Some(None));
            link.add_attempt(ConnId(number));
            link.note_retry(at(1 + number));
            assert_eq!(link.retry(at(1 + number)), None, "one a second");
        }
        assert_eq!(link.retry(at(4)), Some(Some(ConnId(0))));
        assert_eq!(link.take_attempts(), [ConnId(1), ConnId(2)]);
        assert!(link.conns().eq([ConnId(9)]));
    }

    #[test]
    fn a_peer_that_is_dialed_is_due_for_attempts_and_one_that_came_in_for_its_greeting() {
        let mut link = dialed();
        assert_eq!(link.due(), Some(at(0)));
        link.begin_attempt(at(1));
        let next = at(1) + ATTEMPT_EVERY;
        assert_eq!((link.next_attempt(), link.due()), (next, Some(next)));
        assert!(!link.is_attempt_due(at(1)) && link.is_attempt_due(next));
        let mut link = PeerLink::came_in(at(3), ConnId(1));
        assert_eq!((link.due(), link.conn()), (Some(at(13)), Some(ConnId(1))));
        assert!(!link.is_attempt_due(at(99)) && link.open_conn().is_none());
        assert!(link.not_answered(at(12), remote()).is_none());
        assert!(link.not_answered(at(13), remote()).is_some());
        assert_eq!((link.state(), link.hub()), (HubState::Greeting, None));
        link.set_hub(hub());
        link.open([7; 16]);
        assert_eq!((link.state(), link.hub()), (HubState::Open, Some((ConnId(1), hub()))));
        assert_eq!(link.instance(), [7; 16]);
    }

    #[test]
    fn time_that_does_not_count_moves_what_is_waited_for() {
        let mut link = PeerLink::came_in(at(1), ConnId(1));
        link.shift(Duration::from_secs(3));
        assert_eq!(link.due(), Some(at(14)), "the greeting");
        link.open([0; 16]);
        link.await_list(at(20), 1).unwrap();
        link.shift(Duration::from_secs(5));
        assert_eq!((link.due(), link.expire_lists(at(24))), (Some(at(25)), 0));
        assert_eq!((link.expire_lists(at(25)), link.list_count()), (1, 0));
    }

    #[test]
    fn who_joins_the_dialing_waits_from_then_on() {
        let mut link = dialed();
        link.join_dialing(at(5), DialParams::default());
        assert!(link.not_answered(at(14), remote()).is_none());
        assert!(link.not_answered(at(15), remote()).is_some());
    }

    #[test]
    fn refusals_are_believed_while_no_connection_is_in_use_and_nothing_was_heard() {
        let here: Address = "127.0.0.1:9".parse().unwrap();
        let mut link = dialed();
        assert!(!link.handle_refused(at(1), remote()), "elsewhere one is not enough");
        assert!(link.handle_refused(at(1), here));
        let error = link.not_answered(at(10), remote()).unwrap();
        assert_eq!(error.code, Code::NotListening);
        link.handle_heard();
        assert!(!link.handle_refused(at(1), here), "it was heard");
        assert_eq!(link.not_answered(at(10), remote()).unwrap().code, Code::Unreachable);
        let mut link = dialed();
        link.choose(ConnId(1), hub());
        assert!(!link.handle_refused(at(1), here), "a connection is in use");
    }

    #[test]
    fn an_attempt_that_is_gone_is_tried_no_more_and_the_others_are() {
        let mut link = dialed();
        for number in 1..=3 {
            link.add_attempt(ConnId(number));
        }
        assert!(link.conns().eq([ConnId(1), ConnId(2), ConnId(3)]));
        assert!(link.handle_lost(ConnId(2), remote(), "gone", None).is_none());
        assert!(link.conns().eq([ConnId(1), ConnId(3)]));
        assert_eq!(link.choose(ConnId(3), hub()), [ConnId(1)]);
        assert!(link.conns().eq([ConnId(3)]));
    }
}
