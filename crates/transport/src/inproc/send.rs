//! Sending: into the queue of the receiving endpoint, as much as it holds.

use super::InProc;
use super::config::{Config, Full};
use super::switchboard::{Endpoint, Queue};
use crate::transport::datagrams_in;
use crate::{Outgoing, SendError, Sent, TrafficClass, Transport};
use dacapo_base::Address;

impl InProc {
    pub(super) fn send_to_hub(&mut self, outgoing: &Outgoing<'_>) -> Result<Sent, SendError> {
        let segment = outgoing.datagram_len();
        if segment > self.datagram_len_max() {
            self.stats.too_large += 1;
            return Err(SendError::TooLarge { mtu: Some(self.datagram_len_max()) });
        }
        let (local, config) = (self.local(), *self.hub.config());
        let mut state = self.hub.state();
        let as_data = outgoing.lane == TrafficClass::Data && state.has_lane(local, outgoing.remote);
        let Some(receiver) = state.endpoint(outgoing.remote) else {
            drop(state);
            self.stats.refused += 1;
            return Err(SendError::Refused);
        };
        let taken = receiver.take(outgoing, segment, as_data.then_some(local), local, &config);
        drop(state);
        self.count_taken(outgoing, segment, &taken);
        match config.full {
            Full::Block if taken.datagrams < datagrams_in(outgoing.bytes.len(), segment) => {
                Ok(Sent::Blocked { bytes_taken: taken.bytes })
            }
            // What found no room was taken, too, and dropped on the way.
            Full::Block | Full::Drop => Ok(Sent::All),
        }
    }

    fn count_taken(&mut self, outgoing: &Outgoing<'_>, segment: usize, taken: &Taken) {
        let count = datagrams_in(outgoing.bytes.len(), segment);
        if self.hub.config().full == Full::Drop {
            self.stats.count_sent(count, outgoing.bytes.len(), 1);
            return;
        }
        self.stats.would_blocks += u64::from(taken.datagrams < count);
        if taken.datagrams > 0 {
            self.stats.count_sent(taken.datagrams, taken.bytes, 1);
        }
    }
}

/// What found room.
struct Taken {
    datagrams: usize,
    bytes: usize,
}

impl Endpoint {
    fn take(
        &mut self,
        outgoing: &Outgoing<'_>,
        segment: usize,
        data_lane: Option<Address>,
        from: Address,
        config: &Config,
    ) -> Taken {
        let count = datagrams_in(outgoing.bytes.len(), segment);
        let queue = self.queue_for(data_lane);
        let datagrams = queue.room(count, segment, config);
        let bytes = outgoing.bytes.len().min(datagrams * segment);
        if datagrams > 0 {
            queue.push_runs(from, &outgoing.bytes[..bytes], segment);
            self.waker.wake();
        }
        if datagrams < count {
            match config.full {
                Full::Drop => self.drops.queue_full += (count - datagrams) as u64,
                Full::Block => {
                    self.blocked.insert(from);
                }
            }
        }
        Taken { datagrams, bytes }
    }

    /// The data lane for this remote when it is open here, too; else the control lane.
    fn queue_for(&mut self, data_lane: Option<Address>) -> &mut Queue {
        match data_lane.and_then(|remote| self.data.get_mut(&remote)) {
            Some(queue) => queue,
            None => &mut self.control,
        }
    }
}
