//! The arithmetic that profiles share: shares in billionths, packets of a unit, packets in a time.
//!
//! A share is rounded up, so that what is predicted is never better than what the formula says, and
//! only nothing gives nothing.
//!
//! Invariants: integers only; everything saturates and nothing panics; each result grows (or falls)
//! with each argument, without which no profile could keep the order of services.

pub(crate) use dacapo_lift::shares::{both, part, ratio};
use dacapo_lift::{PPB, Path, Setting, Units};

/// The bytes before every unit inside a graph, which number it.
const UNIT_HEAD: u64 = dacapo_wire::unit::LEN as u64;

/// From this share on, in ppb, something belongs to what 99 of 100 packets meet.
pub(crate) const ONE_IN_HUNDRED: u64 = PPB / 100;

/// One millisecond in ns.
pub(crate) const MILLISECOND: u64 = 1_000_000;

/// `value` rounded up to whole milliseconds, in ns.
pub(crate) fn whole_milliseconds(value: u64) -> u64 {
    value.div_ceil(MILLISECOND).saturating_mul(MILLISECOND)
}

/// The chance of one or the other, in ppb, when they do not depend on each other.
pub(crate) fn either(a: u64, b: u64) -> u64 {
    let (a, b) = (a.min(PPB), b.min(PPB));
    // 1 - (1 - a)(1 - b): the product is rounded down.
    let neither = u128::from(PPB - a) * u128::from(PPB - b) / u128::from(PPB);
    PPB - u64::try_from(neither).unwrap_or(0)
}

/// The chance, in ppb, that what happens with chance `share` happens `count` times running.
pub(crate) fn running(share: u64, mut count: u64) -> u64 {
    let (mut power, mut square) = (PPB, share.min(PPB));
    while count > 0 {
        if count % 2 == 1 {
            power = both(power, square);
        }
        square = both(square, square);
        count /= 2;
    }
    power
}

/// The bytes of a mean unit as it is inside a graph.
pub(crate) fn unit_bytes(units: &Units) -> u64 {
    u64::from(units.len_mean).saturating_add(UNIT_HEAD)
}

/// How much of what a flow may send is payload, at least, in per cent.
const OF_PAYLOAD: u64 = 96;

/// How many packets more for every so many fit into what the flow may send; without a bound where
/// its units already fill that, or nobody bounds it: there its load says nothing.
pub(crate) fn room_for(packets: u64, setting: &Setting) -> u64 {
    let load = ratio(setting.units.per_ks, unit_bytes(&setting.units).saturating_mul(8), 1_000);
    let may = part(setting.used_bps(setting.rate_bps()), OF_PAYLOAD, 100);
    match may.checked_sub(load) {
        None => u64::MAX,
        Some(more) => part(packets, more, load).max(1),
    }
}

/// How many packets a mean unit takes, of which each has this room.
pub(crate) fn packets_per_unit(units: &Units, room: u32) -> u64 {
    unit_bytes(units).div_ceil(u64::from(room.max(1))).max(1)
}

/// How many packets of the flow go out in `time_ns`, rounded down, and at least one.
pub(crate) fn packets_in(units: &Units, room: u32, time_ns: u64) -> u64 {
    let per_ks = u128::from(units.per_ks) * u128::from(packets_per_unit(units, room));
    // 1,000 s are 10^12 ns.
    let count = per_ks.saturating_mul(u128::from(time_ns)) / 1_000_000_000_000;
    u64::try_from(count).unwrap_or(u64::MAX).max(1)
}

/// The chance that a run of losses goes on with the next packet, in ppb.
pub(crate) fn goes_on(path: &Path) -> u64 {
    let burst = path.burst_milli.max(1_000);
    ratio(PPB, burst - 1_000, burst)
}

/// The time from one unit to the next, in ns.
pub(crate) fn unit_apart_ns(units: &Units) -> u64 {
    // 1,000 s are 10^12 ns.
    ratio(1, 1_000_000_000_000, units.per_ks)
}

/// How far packets are apart on average, in ns, at least 1: for datagrams that are full, the fewest
/// that there can be, because more room below would make fewer packets and a better service worse.
pub(crate) fn apart_ns(setting: &Setting) -> u64 {
    let packets = packets_per_unit(&setting.units, setting.path.datagram_len);
    ratio(1_000, 1_000_000_000, setting.units.per_ks.saturating_mul(packets)).max(1)
}

/// How long `bytes` take at `rate_bps`, in ns.
pub(crate) fn time_of(bytes: u64, rate_bps: u64) -> u64 {
    ratio(bytes.saturating_mul(8), 1_000_000_000, rate_bps)
}

/// The share at which a run of losses begins on this path, in ppb.
pub(crate) fn loss_runs(path: &Path) -> u64 {
    ratio(path.loss_ppb.min(PPB), 1_000, path.burst_milli.max(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_probability_rounded_up() {
        assert_eq!(either(PPB / 2, PPB / 2), PPB / 4 * 3);
        assert_eq!((either(0, 7), either(7, 0), either(PPB, 7)), (7, 7, PPB));
        assert_eq!(running(PPB / 2, 3), PPB / 8);
        assert_eq!((running(0, 0), running(0, 5), running(PPB, u64::MAX)), (PPB, 0, PPB));
    }

    #[test]
    fn packets_are_counted_by_what_they_have_room_for() {
        let units = Units {
            len_mean: 1_000,
            len_max: 1_000,
            per_ks: 25_000,
            divisible: false,
            is_paced: true,
        };
        assert_eq!(packets_per_unit(&units, 1_004), 1);
        assert_eq!(packets_per_unit(&units, 1_003), 2);
        // 25 units of 2 packets per second.
        assert_eq!(packets_in(&units, 502, 100 * MILLISECOND), 5);
        assert_eq!(packets_in(&units, 502, 0), 1);
    }

    #[test]
    fn nothing_panics_at_the_ends() {
        let units = Units {
            len_mean: u32::MAX,
            len_max: u32::MAX,
            per_ks: u64::MAX,
            divisible: true,
            is_paced: true,
        };
        assert_eq!(packets_in(&units, 0, u64::MAX), u64::MAX);
        assert_eq!(time_of(u64::MAX, 0), u64::MAX);
        assert_eq!(whole_milliseconds(u64::MAX), u64::MAX);
        assert_eq!((whole_milliseconds(0), whole_milliseconds(1)), (0, MILLISECOND));
    }
}
