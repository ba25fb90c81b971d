//! [`Watched`]: a network that loses what it is told to lose, and knows what went through.

use dacapo_base::Time;
use dacapo_xtp::wire::{Format, Frame, Options};
use dacapo_xtp_net::{Connectionless, SendError, pass_on};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

/// What has gone through, of both ends, and what is to be lost.
#[derive(Clone, Default)]
pub struct Seen(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    count: u64,
    formats: Vec<Format>,
    options: Options,
    /// Of so many packets with data one is lost; 0: none.
    loss_every: u64,
    data_count: u64,
}

impl Seen {
    pub fn count(&self) -> u64 {
        self.0.lock().unwrap().count
    }

    pub fn formats(&self) -> Vec<Format> {
        self.0.lock().unwrap().formats.clone()
    }

    pub fn options(&self) -> Options {
        self.0.lock().unwrap().options
    }

    /// From now on loses one of so many packets with data; 0: none.
    pub fn lose_one_of(&self, count: u64) {
        self.0.lock().unwrap().loss_every = count;
    }

    /// How many bytes of a train lie before the first packet that is to be lost.
    fn before_loss(&self, train: &[u8], segment: usize) -> usize {
        let inner = self.0.lock().unwrap();
        let mut data_count = inner.data_count;
        let is_sent = |packet: &&[u8]| {
            data_count += u64::from(format(packet) == Format::Data);
            format(packet) != Format::Data
                || inner.loss_every == 0
                || !data_count.is_multiple_of(inner.loss_every)
        };
        train.chunks(segment).take_while(is_sent).map(<[u8]>::len).sum()
    }

    fn note_lost(&self) {
        self.0.lock().unwrap().data_count += 1;
    }

    fn note_sent(&self, packet: &[u8]) {
        let header = Frame::open(packet).unwrap().header;
        let mut inner = self.0.lock().unwrap();
        inner.count += 1;
        inner.data_count += u64::from(header.format == Format::Data);
        inner.options |= header.options;
        if !inner.formats.contains(&header.format) {
            inner.formats.push(header.format);
        }
    }
}

fn format(packet: &[u8]) -> Format {
    Frame::open(packet).unwrap().header.format
}

pub struct Watched {
    pub inner: Box<dyn Connectionless>,
    pub seen: Seen,
}

#[deny(clippy::missing_trait_methods, reason = "one that is forgotten would not be passed on")]
impl Connectionless for Watched {
    pass_on!(
        inner: local, packet_len_max, carriage, address, watch, watch_capacity, poll_capacity,
        handle_event, recv, join, take_missed, deadline, handle_time,
    );

    /// The packets before the first that is to be lost, or that one.
    fn send(
        &mut self,
        now: Time,
        to: SocketAddr,
        train: &[u8],
        segment: usize,
    ) -> Result<usize, SendError> {
        let before = self.seen.before_loss(train, segment);
        if before == 0 {
            self.seen.note_lost();
            return Ok(segment.min(train.len()));
        }
        let taken = self.inner.send(now, to, &train[..before], segment)?;
        train[..taken].chunks(segment).for_each(|packet| self.seen.note_sent(packet));
        Ok(taken)
    }
}
