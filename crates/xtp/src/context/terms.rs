//! [`Terms`]: what was agreed of an association: its service, the options of this end, and the
//! limits of both.
//!
//! Invariant: of a limit that both ends have said the narrower holds; 0 and 2^32 - 1 say nothing.

use crate::config::Mode;
use crate::rate::smaller;
use crate::wire::{HEADER_LEN, Limits, Options, Service, Traffic};

/// What was agreed of an association.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    service: Service,
    mode: Mode,
    /// What the peer has said of its own, or of all members the narrowest.
    theirs: Limits,
}

impl Terms {
    /// The peer has not said anything.
    pub const fn new(service: Service, mode: Mode) -> Self {
        let theirs = Limits { data_len_max: 0, in_rate: 0, in_burst: 0, out_rate: 0, out_burst: 0 };
        Self { service, mode, theirs }
    }

    pub const fn service(&self) -> Service {
        self.service
    }

    pub const fn mode(&self) -> &Mode {
        &self.mode
    }

    /// The priority; smaller is more urgent.
    pub const fn sort(&self) -> Option<u16> {
        self.mode.sort
    }

    /// Whether the service lets nothing come back.
    pub const fn is_quiet(&self) -> bool {
        matches!(self.service, Service::Datagram | Service::Multicast)
    }

    /// The service that a FIRST asks for.
    pub fn handle_service(&mut self, number: u8) {
        self.service = Service::from_number(number).unwrap_or(Service::Unspecified);
    }

    /// The user has other limits from now on.
    pub fn set_limits(&mut self, limits: Limits) {
        self.mode.limits = limits;
    }

    /// The peer has said its limits.
    pub fn handle_limits(&mut self, limits: Limits) {
        self.theirs = limits;
    }

    /// The peer takes so much data in a packet, bytes.
    pub fn handle_data_len(&mut self, len: u32) {
        self.theirs.data_len_max = len;
    }

    /// The limits that the peer has said.
    pub const fn theirs(&self) -> Limits {
        self.theirs
    }

    /// The rate, bytes per second, and the burst, bytes, at which this end sends.
    pub fn pace(&self) -> (u32, u32) {
        let (own, theirs) = (&self.mode.limits, &self.theirs);
        let burst = smaller(own.out_burst, theirs.in_burst);
        let rate = smaller(own.out_rate, theirs.in_rate);
        (rate, if burst == u32::MAX { 0 } else { burst })
    }

    /// What this end says of its traffic, whose packets are so long at most, bytes.
    pub const fn traffic(&self, packet_len_max: usize) -> Traffic {
        let data_len_max = packet_len_max.saturating_sub(HEADER_LEN) as u32;
        let limits = Some(Limits { data_len_max, ..self.mode.limits });
        Traffic { service: self.service as u8, limits }
    }

    /// The options of every packet: priority, and whether it goes to a group.
    pub fn options(&self) -> Options {
        Options::SORT.when(self.mode.sort.is_some())
            | Options::MULTI.when(self.service.is_to_group())
    }

    /// The options of data, by the user's choice.
    pub fn data_options(&self) -> Options {
        Options::NOCHECK.when(self.mode.without_check)
            | Options::NOERR.when(self.mode.without_repair)
            | Options::NOFLOW.when(self.mode.without_window)
            | Options::FASTNAK.when(self.mode.fast_report)
    }

    /// The options of control packets.
    pub fn control_options(&self) -> Options {
        Options::RES.when(self.mode.reserve) | Options::NOERR.when(self.mode.without_repair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Traffic segment: the narrower of both holds, and what says nothing bounds nothing.
    #[test]
    fn the_narrower_limit_holds_and_none_is_no_limit() {
        let none = u32::MAX;
        for (own, theirs, pace) in [
            ((0, 0), (0, 0), (none, 0)),
            ((1_000, 100), (0, 0), (1_000, 100)),
            ((0, 0), (500, 50), (500, 50)),
            ((1_000, 100), (500, 200), (500, 100)),
            ((1_000, none), (none, none), (1_000, 0)),
        ] {
            let limits = Limits { out_rate: own.0, out_burst: own.1, ..Limits::default() };
            let mut terms = Terms::new(Service::Stream, Mode { limits, ..Mode::default() });
            let (in_rate, in_burst) = theirs;
            terms.handle_limits(Limits { in_rate, in_burst, ..Limits::default() });
            assert_eq!(terms.pace(), pace, "{own:?} {theirs:?}");
        }
    }

    #[test]
    fn traffic_says_the_limits_of_the_user_and_the_length_of_packets() {
        let limits = Limits { in_rate: 7, data_len_max: 9, ..Limits::default() };
        let mut terms = Terms::new(Service::Stream, Mode::default());
        terms.set_limits(limits);
        terms.handle_limits(Limits { in_rate: 5, data_len_max: 400, ..Limits::default() });
        assert_eq!(terms.theirs().data_len_max, 400);
        terms.handle_data_len(300);
        assert_eq!(terms.theirs().data_len_max, 300);
        let said = Traffic {
            service: Service::Stream as u8,
            limits: Some(Limits { data_len_max: 1_420, ..limits }),
        };
        assert_eq!(terms.traffic(1_452), said);
    }

    #[test]
    fn options_follow_service_and_mode() {
        let mode = Mode { sort: Some(3), reserve: true, without_repair: true, ..Mode::default() };
        let mut terms = Terms::new(Service::Stream, mode);
        assert_eq!(terms.options(), Options::SORT);
        assert_eq!(terms.control_options(), Options::RES | Options::NOERR);
        assert_eq!(terms.data_options(), Options::NOERR);
        assert!(!terms.is_quiet());
        terms.handle_service(Service::Multicast as u8);
        assert!(terms.is_quiet() && terms.options() == Options::SORT | Options::MULTI);
        terms.handle_service(200);
        assert_eq!(terms.service(), Service::Unspecified);
    }
}
