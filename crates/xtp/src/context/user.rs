//! What users do to a context.

use super::Context;
use crate::event::{End, Events};
use crate::receiver::Read;
use crate::table::Input;
use crate::wire::Limits;
use dacapo_base::Time;

impl Context {
    /// Whether the user can still send.
    pub fn takes_data(&self) -> bool {
        self.end.is_none() && !self.sender.is_finished()
    }

    /// Takes as much as there is room for; `asks` for word of its delivery.
    pub fn write(&mut self, data: &[u8], is_end: bool, tag: Option<[u8; 8]>, asks: bool) -> usize {
        let taken = self.sender.write(data, is_end, tag);
        self.wants_room |= taken < data.len();
        if asks && taken == data.len() {
            self.deliveries.push_back(self.sender.end());
        }
        taken
    }

    /// Gives the user what is next.
    pub fn read(&mut self, now: Time, into: &mut [u8]) -> Read {
        let read = self.receiver.read(into);
        if self.state.is_live() {
            self.answer_deliveries(now);
            if self.receiver.has_news_of_window() {
                self.reply(now);
            }
        }
        read
    }

    /// The user has room for more (reservation).
    pub fn post(&mut self, now: Time, len: usize) {
        self.receiver.post(len);
        self.reply(now);
    }

    /// The user sends no more.
    pub fn finish(&mut self) {
        self.sender.finish();
    }

    /// The user reads no more.
    pub fn stop_reading(&mut self, now: Time) {
        if !self.receiver.is_stopped() {
            self.receiver.stop();
            self.reply(now);
        }
    }

    /// The user has other limits from now on.
    pub fn set_limits(&mut self, now: Time, limits: Limits) {
        self.mode.limits = limits;
        self.rate.set(now, limits.out_rate, limits.out_burst);
        self.wants.is_traffic_due = true;
    }

    /// The user gives the association up.
    pub fn abort(&mut self) {
        if self.end.is_none() {
            self.give_up(Input::UserAborts, End::Abandoned);
        }
    }

    /// There is room again for what could not be written.
    pub(super) fn tell_room(&mut self) {
        if self.wants_room && self.sender.room() > 0 {
            self.wants_room = false;
            self.events.insert(Events::WRITABLE);
        }
    }
}
