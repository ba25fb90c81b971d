//! What time does: rest, gathered reports, the pace of groups, patience with what closes.

use super::MessageService;
use dacapo_base::Time;

impl MessageService {
    /// When [`MessageService::handle_time`] has something to do; asked when
    /// [`MessageService::poll_packet`] has nothing.
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
        .fold(self.engine.deadline(), Time::min)
    }

    /// Time goes on.
    pub fn handle_time(&mut self, now: Time) {
        self.engine.handle_time(now);
        self.handle_events(now, None);
        while let Some(id) = self.reports.pop_due(now) {
            self.report(now, id);
        }
        while let Some(route) = self.paced.pop_due(now) {
            self.go_on(now, route);
        }
        while let Some(route) = self.resting.pop_due(now) {
            self.rest(now, route);
        }
        while let Some(id) = self.closing.pop_due(now) {
            // Its end is told, and settles what was under way.
            let _ = self.engine.abort(now, id);
        }
        while let Some(id) = self.leaving.pop_due(now) {
            self.release(now, id);
        }
        self.handle_events(now, None);
    }
}
