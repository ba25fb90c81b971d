//! What is due for peers: attempts, greetings, life signs, and the end of waiting for contact.

use super::{PeerCx, Peers};
use crate::control::ConnId;
use crate::effect::{Out, PeerNews};
use crate::error::{Code, Error};
use crate::events::CoreEvent;
use crate::ids::PeerId;
use crate::peer::Peer;
use crate::peer::liveness::Silence;
use dacapo_path::Life;

impl Peers {
    /// Looks at those that are awake; with the others nothing can have happened. How many they are.
    pub fn handle_timeout(&mut self, cx: &mut PeerCx<'_>, out: &mut Out) -> usize {
        self.wake_due(cx.now);
        if !self.all.is_any_awake() {
            return 0;
        }
        let mut ids: Vec<PeerId> = self.all.awake().collect();
        if let Some(first) = self.unasked.take() {
            let before = ids.partition_point(|id| *id < first);
            ids.rotate_left(before);
        }
        for &id in &ids {
            self.watch_link(cx, id, out);
            self.watch_life(cx, id, out);
            self.watch_contact(cx, id, out);
        }
        ids.len()
    }

    fn watch_link(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let now = cx.now;
        if self.get(id).is_some_and(|peer| peer.link.is_attempt_due(now))
            && let Err(error) = self.begin_attempt(cx, id)
        {
            self.lose(cx, id, &error, out);
        }
        let Some(peer) = self.get(id) else { return };
        if let Some(error) = peer.link.not_answered(now, peer.remote) {
            return self.lose(cx, id, &error, out);
        }
        let expired = self.all.with(id, |peer| peer.link.expire_lists(now));
        for _ in 0..expired.unwrap_or(0) {
            let error = Error::new(Code::NoAnswer, "LIST");
            out.event(CoreEvent::Listing { peer: id, sessions: Err(error) });
        }
    }

    fn watch_life(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let (now, conn) = (cx.now, self.get(id).and_then(Peer::conn));
        let counts = conn.map_or((0, 0), |conn| (cx.control.heard(conn), cx.control.acked(conn)));
        let life = self.all.with(id, |peer| {
            let is_new = peer.life.handle_counts(now, counts.0, counts.1);
            let waits = peer.waits_for_path(now);
            if peer.poll_room(now) {
                out.peer(id, PeerNews::Room);
            }
            Some((peer.watch(now, is_new && waits)?, peer.is_suspended()))
        });
        self.further.settle(&mut self.all, now, id, out);
        match life {
            None => return,
            Some(None) => {
                self.ping_if_due(cx, id);
                // Further paths that were found first are asked about all the same.
                self.ask(cx, id, out);
                return self.watch_unprobed(cx, id, out);
            }
            Some(Some((Life::Lost, false))) => self.lose_contact(cx, id, out),
            Some(Some((Life::Alive, true))) => self.restore_contact(cx, id, out),
            Some(Some(_)) => {}
        }
        self.ping_if_due(cx, id);
        self.ask(cx, id, out);
        out.peer(id, PeerNews::DataOpen);
    }

    fn ping_if_due(&mut self, cx: &mut PeerCx<'_>, id: PeerId) {
        let now = cx.now;
        let Some(peer) = self.get(id).filter(|peer| peer.is_to_be_pinged(now)) else { return };
        let conn = peer.conn();
        if self.all.with(id, |peer| peer.life.ping(now)) == Some(true) {
            conn.into_iter().for_each(|conn| cx.control.ping(conn));
        }
    }

    fn watch_unprobed(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let now = cx.now;
        let Some((conn, remote)) = self.get(id).and_then(|it| Some((it.conn()?, it.remote))) else {
            return;
        };
        let unprobed = |peer: &mut Peer| {
            let has_sessions = peer.has_sessions();
            (peer.life.watch_unprobed(now, has_sessions), peer.life.silence(now))
        };
        match self.all.with(id, unprobed) {
            Some((Silence::Lost, silence)) => {
                let text = format!("{remote}: no sign of life for {} s", silence.as_secs());
                self.lose(cx, id, &Error::new(Code::ContactLost, text), out);
            }
            Some((Silence::Ask, _)) => cx.control.ping(conn),
            Some((Silence::None, _)) | None => {}
        }
    }

    /// No sign of life for too long: sessions that are set up wait, the others end.
    fn lose_contact(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let now = cx.now;
        let remote = self.all.with(id, |peer| {
            peer.contact.lose(now);
            peer.link.begin_retries(now);
            peer.remote
        });
        let Some(remote) = remote else { return };
        let text = format!("{remote}: no sign of life for three seconds");
        out.peer(id, PeerNews::ContactLost(Error::new(Code::ContactLost, text)));
    }

    /// A probe was answered: everything goes on where it stopped.
    fn restore_contact(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let now = cx.now;
        let restored = self.all.with(id, |peer| {
            let (after, is_asked_for) = peer.contact.restore(now)?;
            peer.life.solicit_acks(now);
            peer.life.ping_now(now);
            peer.data.handle_path_change(now);
            Some((after, is_asked_for, peer.link.take_attempts()))
        });
        let Some((after, is_asked_for, attempts)) = restored.flatten() else { return };
        if is_asked_for {
            out.event(CoreEvent::PeerOpen { peer: id });
        }
        for attempt in attempts {
            self.drop_attempt(cx, attempt, "contact is back");
        }
        out.peer(id, PeerNews::ContactRestored(after));
    }

    /// While contact is lost: sessions that have waited long enough are given up, and the dialer
    /// tries again.
    fn watch_contact(&mut self, cx: &mut PeerCx<'_>, id: PeerId, out: &mut Out) {
        let now = cx.now;
        if self.all.with(id, |peer| peer.contact.calms_down(now)) == Some(true) {
            out.peer(id, PeerNews::Calm);
        }
        let Some(peer) = self.get(id) else { return };
        let Some(since) = peer.lost_since() else { return };
        let retries = peer.is_dialed();
        out.peer(id, PeerNews::Waits(now.since(since)));
        if retries {
            self.retry(cx, id);
        }
    }

    fn retry(&mut self, cx: &mut PeerCx<'_>, id: PeerId) {
        let now = cx.now;
        let Some(oldest) = self.all.with(id, |peer| peer.link.retry(now)).flatten() else { return };
        if let Some(oldest) = oldest {
            self.drop_attempt(cx, oldest, "another attempt follows");
        }
        // What cannot be begun now is begun later.
        let _ = self.begin_attempt(cx, id);
        self.all.with(id, |peer| peer.link.note_retry(now));
    }

    pub(super) fn drop_attempt(&mut self, cx: &mut PeerCx<'_>, conn: ConnId, why: &str) {
        self.conns.remove(&conn);
        self.streams.retain(|(known, _), _| *known != conn);
        cx.control.close(cx.now, conn, Code::Closed, why);
    }
}
