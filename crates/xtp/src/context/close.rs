//! How the two halves of an association close.
//!
//! ```text
//!   this end's stream:  open --finish--> WCLOSE sent --RCLOSE comes--> closed
//!   the peer's stream:  open --WCLOSE--> bytes lack? --all here------> RCLOSE sent: closed
//!   both closed: whoever knows it first says END
//! ```
//!
//! WCLOSE is on the packet that holds the last byte, and on what follows it; not on what is sent
//! again from before it, because the end of the stream is where the packet with WCLOSE ends
//! (decided here: the published descriptions call the bits sticky and do not speak of that).

use super::Context;
use crate::event::{End, Events};
use crate::table::Input;
use crate::wire::{Code, Options, Reason};
use dacapo_base::Time;

impl Context {
    /// RCLOSE, and WCLOSE where the packet ends at the end of the stream.
    pub(super) fn close_options(&self, packet_end: u64) -> Options {
        if self.lifecycle.is_aborting() {
            // What was not sent never will be: this is no orderly end.
            return Options::NONE;
        }
        let is_writer_closed = self.sender.is_finished() && packet_end == self.sender.end();
        Options::WCLOSE.when(is_writer_closed) | Options::RCLOSE.when(self.is_reader_closed())
    }

    fn is_reader_closed(&self) -> bool {
        self.receiver.is_complete() || self.receiver.is_stopped()
    }

    /// The close bits of a packet that ends at `packet_end`.
    pub(super) fn take_close(&mut self, now: Time, options: Options, packet_end: u64) {
        if options.has(Options::WCLOSE) {
            if !self.receiver.set_end(packet_end) {
                self.replies.remark(Code::PROTOCOL_ERROR, Reason::UNSPECIFIED);
            } else if options.has(Options::NOERR) || self.peer_is_lossy {
                self.receiver.skip_to(packet_end);
            }
        }
        if options.has(Options::RCLOSE) && !self.is_rclose_received {
            self.is_rclose_received = true;
            self.sender.stop();
            self.requests.clear();
            self.deliveries.clear();
        }
        if self.is_reader_closed() && !self.is_rclose_told {
            self.is_rclose_told = true;
            self.lifecycle.tell(Events::READABLE);
            self.replies.reply_closing(now, self.waits_for_response());
        }
        if self.is_over() {
            self.give_up(Input::BothClosed, End::Complete);
        }
    }

    /// Whether both streams have come to their end, and both ends know it.
    pub(super) fn is_over(&self) -> bool {
        if self.group.is_some() {
            return self.is_group_over();
        }
        self.is_rclose_received && self.sender.is_all_sent() && self.receiver.is_complete()
    }

    /// How an END is meant: `Complete` when nothing lacks.
    pub(super) fn end_by_peer(&self) -> End {
        let is_sent = self.is_rclose_received && self.sender.is_all_sent();
        if is_sent && self.receiver.is_complete() { End::Complete } else { End::Aborted }
    }

    /// Whether only the peer's END was waited for.
    pub(super) fn lacks_only_end(&self) -> bool {
        let is_sent = self.sender.is_all_sent() && !self.sender.has_unacknowledged();
        is_sent && self.receiver.is_complete()
    }

    /// The context has ended: what was to be sent is given back.
    pub fn let_go(&mut self) {
        self.sender.stop();
        self.requests.clear();
        self.replies.clear_status();
        self.lifecycle.let_go();
    }
}
