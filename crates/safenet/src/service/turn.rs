//! The turn: what the engine tells, and what time brings: rest, gathered reports, the pace of
//! groups, patience with what closes.

use super::Messages;
use dacapo_base::Time;
use dacapo_xtp::Engine;

impl Messages {
    /// When [`Messages::handle_turn`] has something to do besides the engine's events.
    #[must_use]
    pub fn deadline(&self) -> Time {
        [
            self.resting.first(),
            self.paced.first(),
            self.reports.first(),
            self.leaving.first(),
            self.closing.first(),
        ]
        .into_iter()
        .fold(Time::NEVER, Time::min)
    }

    /// Takes the engine's events, and does what is due and what has become possible. To be called
    /// after the engine was given packets or time, and after all its packets were taken: what has
    /// left makes room, and ends messages to groups. False when nothing was there to do; else the
    /// engine may have packets again.
    pub fn handle_turn(&mut self, now: Time, engine: &mut Engine) -> bool {
        let mut has_some = self.handle_due(now, engine);
        while let Some(event) = engine.poll_event() {
            has_some = true;
            self.handle_event(now, engine, event);
        }
        self.look_at_members(now, engine);
        has_some
    }

    fn handle_due(&mut self, now: Time, engine: &mut Engine) -> bool {
        let is_due = self.deadline() <= now;
        while let Some(id) = self.reports.pop_due(now) {
            self.report(now, engine, id);
        }
        while let Some(route) = self.paced.pop_due(now) {
            self.go_on(now, engine, route);
        }
        while let Some(route) = self.resting.pop_due(now) {
            self.rest(now, engine, route);
        }
        while let Some(id) = self.closing.pop_due(now) {
            // Its end is told, and settles what was under way.
            let _ = engine.abort(now, id);
        }
        while let Some(id) = self.leaving.pop_due(now) {
            self.release(now, engine, id);
        }
        is_due
    }
}
