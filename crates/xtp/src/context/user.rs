//! What users do to a context.

use super::Context;
use crate::arrival::Read;
use crate::engine::Message;
use crate::event::{End, Events};
use crate::table::{Input, State};
use crate::wire::Limits;
use dacapo_base::Time;
use std::time::Duration;

impl Context {
    /// Whether the user can still send.
    pub fn takes_data(&self) -> bool {
        self.lifecycle.end().is_none() && !self.sender.is_finished()
    }

    /// Takes as much of a message as there is room for.
    pub fn write(&mut self, now: Time, message: &Message<'_>) -> usize {
        let Message { data, is_end, tag, asks_delivery, has_more } = *message;
        let taken = self.sender.write(data, is_end, tag);
        if has_more && !is_end && !asks_delivery {
            self.sender.hold();
            self.flush_timer.begin(now, self.sender.next(), self.sender.end());
        } else {
            self.sender.let_go();
            self.flush_timer.clear();
        }
        self.wants_room |= taken < data.len();
        if asks_delivery && taken == data.len() {
            self.deliveries.push_back(self.sender.end());
        }
        if self.lifecycle.state() == State::Open {
            // It may have closed before there was anything to send.
            self.watch_window(now);
        }
        taken
    }

    /// Gives the user what is next.
    pub fn read(&mut self, now: Time, into: &mut [u8]) -> Read {
        let read = self.receiver.read(into);
        if self.lifecycle.state().is_live() {
            let receiver = &self.receiver;
            self.replies.handle_delivered(now, |place| receiver.is_delivered(place));
            if self.receiver.has_news_of_window() {
                self.replies.reply(now);
            }
        }
        read
    }

    /// The user has room for more (reservation).
    pub fn post(&mut self, now: Time, len: usize) {
        self.receiver.post(len);
        self.replies.reply(now);
    }

    /// The user sends no more.
    pub fn finish(&mut self) {
        self.sender.finish();
        self.flush_timer.clear();
    }

    /// The user reads no more.
    pub fn stop_reading(&mut self, now: Time) {
        if !self.receiver.is_stopped() {
            self.receiver.stop();
            self.replies.reply(now);
        }
    }

    /// The user has other limits from now on.
    pub fn set_limits(&mut self, now: Time, limits: Limits) {
        self.mode.limits = limits;
        self.adopt(now, self.their_limits);
        self.wants.is_traffic_due = true;
    }

    /// A peer that does not answer is waited for as long as this.
    pub fn set_give_up(&mut self, give_up: Duration) {
        self.requests.set_give_up(give_up);
    }

    /// The user gives the association up.
    pub fn abort(&mut self) {
        self.give_up(Input::UserAborts, End::Abandoned);
    }

    /// More was announced and has not come: what there is goes out.
    pub(super) fn release_late(&mut self, now: Time) {
        if self.flush_timer.is_over(now, self.sender.next()) {
            self.sender.let_go();
        }
    }

    /// There is room again for what could not be written.
    pub(super) fn tell_room(&mut self) {
        if self.wants_room && self.sender.room() > 0 {
            self.wants_room = false;
            self.lifecycle.tell(Events::WRITABLE);
        }
    }
}
