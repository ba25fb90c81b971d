//! [`Net`]: ends that hand each other their packets.

use super::PATIENCE;
use crate::MessageService;
use dacapo_base::Time;
use dacapo_xtp::Engine;
use std::net::SocketAddr;

/// Where every end takes messages.
pub const PORT: u16 = 7;

/// The address of an end.
pub fn host(end: usize) -> SocketAddr {
    let number = u8::try_from(end).unwrap_or(u8::MAX).saturating_add(1);
    ([192, 0, 2, number], 4_040).into()
}

/// The address of all ends but the sender.
pub fn group() -> SocketAddr {
    ([239, 255, 0, 1], 4_040).into()
}

/// What is driven: the service, or the engine alone.
pub trait End {
    fn handle_packet(&mut self, now: Time, from: SocketAddr, bytes: &[u8]);
    fn poll_packet(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr>;
    fn handle_time(&mut self, now: Time);
    fn deadline(&self) -> Time;
}

macro_rules! driven {
    ($end:ty) => {
        impl End for $end {
            fn handle_packet(&mut self, now: Time, from: SocketAddr, bytes: &[u8]) {
                Self::handle_packet(self, now, from, bytes);
            }

            fn poll_packet(&mut self, now: Time, into: &mut Vec<u8>) -> Option<SocketAddr> {
                Self::poll_packet(self, now, into)
            }

            fn handle_time(&mut self, now: Time) {
                Self::handle_time(self, now);
            }

            fn deadline(&self) -> Time {
                Self::deadline(self)
            }
        }
    };
}

driven!(MessageService);
driven!(Engine);

/// Ends and what lies between them: nothing.
pub struct Net<E> {
    pub ends: Vec<E>,
    packet: Vec<u8>,
}

impl<E: End> Net<E> {
    pub fn new(ends: Vec<E>) -> Self {
        Self { ends, packet: Vec::new() }
    }

    /// Hands over every packet that one end has; after each packet `take` sees who got it.
    pub fn carry(&mut self, now: Time, from: usize, mut take: impl FnMut(usize, &mut E)) {
        while let Some(to) = self.poll(now, from) {
            for (number, end) in self.ends.iter_mut().enumerate() {
                if number != from && (to == group() || to == host(number)) {
                    end.handle_packet(now, host(from), &self.packet);
                    take(number, end);
                }
            }
        }
    }

    fn poll(&mut self, now: Time, from: usize) -> Option<SocketAddr> {
        let end = self.ends.get_mut(from)?;
        if end.deadline() <= now {
            end.handle_time(now);
        }
        self.packet.clear();
        end.poll_packet(now, &mut self.packet)
    }
}

/// Turns until `turn` says that it is done; how long it took, `None` when it hangs.
pub fn until_done(
    clock: &mut dyn FnMut() -> Time,
    mut turn: impl FnMut(Time) -> bool,
) -> Option<Time> {
    let began = clock();
    let mut now = began;
    while !turn(now) {
        now = clock();
        if now.since(began) > PATIENCE {
            return None;
        }
    }
    Some(now)
}
