//! The two costs that the paper derives, as differences of throughput.

use super::Measured;
use crate::cli::XtpMode;

/// The costs at one length of packets and sends, Mbit/s; `None` where a mode was not measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// The longest packet, bytes.
    pub packet_len: u32,
    /// Bytes of a send.
    pub send_len: u32,
    /// Of reliability: ACK-Un less ACK-Rel.
    pub reliability: Option<f64>,
    /// Of waiting for acknowledgements: Blast less ACK-Un, an indirect measure of latency.
    pub waiting: Option<f64>,
}

/// The throughput of a mode there, Mbit/s.
pub fn mbit_s(all: &[Measured], (packet_len, send_len): (u32, u32), mode: XtpMode) -> Option<f64> {
    find(all, (packet_len, send_len), mode).map(|measured| measured.sum.mbit_s())
}

/// What was measured of a mode there.
pub fn find(
    all: &[Measured],
    (packet_len, send_len): (u32, u32),
    mode: XtpMode,
) -> Option<&Measured> {
    let point = super::Point { mode, packet_len, send_len };
    all.iter().find(|measured| measured.point == point)
}

/// The lengths of packets and sends that were measured, in their order.
pub fn places(all: &[Measured]) -> Vec<(u32, u32)> {
    let mut places = Vec::new();
    for Measured { point, .. } in all {
        let place = (point.packet_len, point.send_len);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    places
}

/// The costs at each place.
pub fn costs(all: &[Measured]) -> Vec<Costs> {
    let less = |more: Option<f64>, less: Option<f64>| Some(more? - less?);
    let at = |place: (u32, u32)| {
        let of = |mode| mbit_s(all, place, mode);
        Costs {
            packet_len: place.0,
            send_len: place.1,
            reliability: less(of(XtpMode::AckUn), of(XtpMode::AckRel)),
            waiting: less(of(XtpMode::Blast), of(XtpMode::AckUn)),
        }
    };
    places(all).into_iter().map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Point, Run};
    use super::*;

    #[test]
    fn costs_are_differences_where_both_modes_were_measured() {
        let of = |mode, send_len, bytes_read| Measured {
            point: Point { mode, packet_len: 2_048, send_len },
            runs: 1,
            sum: Run { bytes_read, seconds: 8e-6, ..Run::default() },
        };
        let all = [
            of(XtpMode::AckRel, 512, 5),
            of(XtpMode::AckUn, 512, 7),
            of(XtpMode::Blast, 512, 17),
            of(XtpMode::Blast, 1_024, 20),
        ];
        let costs = costs(&all);
        assert_eq!((costs[0].reliability, costs[0].waiting), (Some(2.0), Some(10.0)));
        assert_eq!((costs[1].reliability, costs[1].waiting), (None, None));
        assert_eq!(places(&all), [(2_048, 512), (2_048, 1_024)]);
    }
}
