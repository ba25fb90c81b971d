//! [`Need`]: what a flow of a session file needs, before a protocol is chosen for it.
//!
//! ```text
//!   [[flow]] + its medium  ->  units (how long, how many), pace, use, pins, attributes  ->  choice
//! ```
//!
//! Invariant: all lengths are in bytes of units without the 4 bytes of the core's own header.

use crate::access::media::SoundGrid;
use crate::access::timeline::Speed;
use crate::access::words;
use crate::access::{Access, Found};
use dacapo_lift::{Path, Units};
use dacapo_media::Format;
use dacapo_qos::configure::{Pins, Use};
use dacapo_qos::{AttributeKey, Attributes, format_rate};
use dacapo_wire::session::Direction;
use std::net::SocketAddr;
use std::sync::Arc;

/// The least bound of a flow that names none, in bit/s; it is the core's too.
const BOUND_BPS_MIN: u64 = 10_000_000;

/// The same on loopback.
const BOUND_LOOPBACK_BPS: u64 = 1_000_000_000;

/// A flow of media without a bound may send so many times the mean rate of its medium.
const BOUND_FACTOR: u64 = 4;

/// The largest unit of bytes where nothing is said and units are cut.
const RAW_LEN: u32 = 1 << 20;

/// What is taken for its mean then.
const RAW_LEN_MEAN: u32 = 16 << 10;

/// The largest unit of sound where units are joined again.
const SOUND_LEN: u32 = 64 << 10;

/// The medium header.
const HEAD_LEN: u32 = dacapo_wire::media::LEN as u32;

/// Units per second of bytes that say nothing of it.
const RAW_PER_KS: u64 = 100_000;

/// What a flow needs.
#[derive(Clone, Debug)]
pub(super) struct Need {
    pub index: u16,
    pub name: String,
    pub direction: Direction,
    pub found: Found,
    /// What takes it at the creator's end; none is the application, or counts media.
    pub sink: Option<Arc<dyn Access>>,
    /// What the session file asks.
    pub attributes: Attributes,
    /// What it fixes by hand.
    pub pins: Pins,
    /// The group that it is sent to.
    pub multicast: Option<SocketAddr>,
    /// The bound that it names, in bit/s.
    pub bound_bps: Option<u64>,
    /// The playout that it names.
    pub playout_ns: Option<u64>,
    /// How much of it is kept at least, where no more is to be kept than is used.
    pub playout_min_ns: Option<u64>,
    /// The largest unit of the application that it names.
    pub unit_max: Option<u32>,
    /// Whether it wants units hashed at both ends.
    pub digest: Option<bool>,
    /// How fast its medium is sent.
    pub speed: Speed,
}

/// What waits for a repair is to be handed over so long before its deadline, and a twentieth of
/// that: by how much clocks are compared wrongly, and timers and processes are late.
const DEADLINE_SPARE_NS: u64 = 5_000_000;

impl Need {
    /// The units that are sent.
    pub fn units(&self, attributes: &Attributes) -> Units {
        match &self.found.format {
            Some(Format::Video(video)) => {
                let per_ks = self.speed.raise(self.found.pictures_per_ks(video));
                let len_max = self.found.picture_unit_len_max();
                // Not from the mean rate: a still is one picture, however long it is shown.
                let mean = u32::try_from(self.found.picture_len_mean)
                    .unwrap_or(u32::MAX)
                    .saturating_add(HEAD_LEN);
                let len_mean = mean.min(len_max);
                Units { len_mean, len_max, per_ks, divisible: false, is_paced: true }
            }
            Some(Format::Audio(audio)) => {
                let unit_len = SoundGrid::new(audio, u64::MAX, SOUND_LEN - HEAD_LEN).unit_len;
                let per_ks = self.speed.raise(audio.bytes_per_second()).saturating_mul(1_000);
                let per_ks = (per_ks / u64::from(unit_len.max(1))).max(1);
                let len = unit_len + HEAD_LEN;
                Units { len_mean: len, len_max: len, per_ks, divisible: true, is_paced: true }
            }
            None => self.raw_units(attributes),
        }
    }

    fn raw_units(&self, attributes: &Attributes) -> Units {
        let (len_mean, len_max) = match self.unit_max {
            Some(len) => (len, len),
            // A graph that is given says itself what units it takes.
            None if self.pins.graph.is_some() => (1, 1),
            None => (RAW_LEN_MEAN, RAW_LEN),
        };
        let frame_rate = attributes.get(AttributeKey::FrameRate);
        let throughput = attributes.get(AttributeKey::Throughput);
        let by_rate = frame_rate.and_then(|asked| asked.max.or(asked.min)).map(|rate| rate / 1_000);
        let by_bits = throughput.and_then(|asked| asked.min.or(asked.max));
        let by_bits = by_bits.map(|bps| bps.saturating_mul(125) / u64::from(len_mean.max(1)));
        let per_ks = by_rate.or(by_bits).unwrap_or(RAW_PER_KS).max(1);
        let is_paced = frame_rate.is_some_and(|asked| asked.max.is_some());
        Units { len_mean, len_max, per_ks, divisible: false, is_paced }
    }

    /// Whether both ends hash units: media, unless the file says otherwise.
    pub fn digest(&self) -> bool {
        self.digest.unwrap_or(self.found.format.is_some())
    }

    /// What the receiver does with units.
    pub fn used(&self) -> Use {
        match self.found.format {
            Some(_) => Use::Played { playout_ns: self.playout_ns },
            None => Use::Handed,
        }
    }

    /// How long after it was sent a unit is of use, in ns: until the playout that is named, or as
    /// long as the attributes allow.
    pub fn useful_ns(&self, attributes: &Attributes) -> u64 {
        let deadline = self.deadline_ns(attributes);
        let in_time = deadline.saturating_sub((deadline / 20).max(DEADLINE_SPARE_NS));
        let in_time = (deadline < u64::MAX).then_some(in_time);
        let bounds = attributes.useful_ns().into_iter().chain(self.playout_ns).chain(in_time);
        bounds.min().unwrap_or(u64::MAX)
    }

    /// How old a unit may be when a module hands it over, in ns: media are dropped when they are
    /// late for their playout.
    pub fn deadline_ns(&self, attributes: &Attributes) -> u64 {
        let asked = attributes.get(AttributeKey::Deadline).and_then(|asked| asked.max);
        asked.filter(|_| self.used() == Use::Handed).unwrap_or(u64::MAX)
    }

    /// The rate that somebody has asked to keep below, in bit/s.
    pub fn asked_bound_bps(&self, attributes: &Attributes) -> Option<u64> {
        let most = attributes.get(AttributeKey::Throughput).and_then(|asked| asked.max);
        [self.bound_bps, most].into_iter().flatten().min()
    }

    /// The pace of a flow over a network that does not set one itself, in bit/s; 0 leaves it to the
    /// core.
    pub fn pace_bps(&self, attributes: &Attributes) -> u64 {
        let least = attributes.get(AttributeKey::Throughput).and_then(|asked| asked.min);
        match (self.asked_bound_bps(attributes), &self.found.format, least) {
            (Some(bound), _, _) => bound,
            (None, Some(_), _) => {
                self.rate_bps_min().saturating_mul(BOUND_FACTOR).max(BOUND_BPS_MIN)
            }
            // A quarter more, so that a pause can be made up for.
            (None, None, Some(least)) => least.saturating_add(least / 4).max(BOUND_BPS_MIN),
            (None, None, None) => 0,
        }
    }

    /// What [`Need::pace_bps`] comes to.
    pub fn effective_pace_bps(&self, attributes: &Attributes, on_loopback: bool) -> u64 {
        match self.pace_bps(attributes) {
            0 if on_loopback => BOUND_LOOPBACK_BPS,
            0 => BOUND_BPS_MIN,
            pace => pace,
        }
    }

    /// The rate that the medium cannot do without, in bit/s; 0 where nobody knows.
    pub fn rate_bps_min(&self) -> u64 {
        self.speed.raise(self.found.mean_bps)
    }

    /// Why a medium that is sent faster than it plays would not be: somebody keeps it below.
    pub fn too_fast(&self, attributes: &Attributes) -> Option<String> {
        let (bound, mean) = (self.asked_bound_bps(attributes)?, self.found.mean_bps.max(1));
        let needed = self.rate_bps_min();
        if self.speed <= Speed::NORMAL || needed <= bound {
            return None;
        }
        let speed = self.speed;
        // In tenths; a twentieth of the bound is left to what the protocol adds.
        let fits = (bound - bound / 20).saturating_mul(10) / mean;
        let (needed, bound) = (words::rate(needed), format_rate(bound));
        Some(format!(
            "at {speed} times its speed the medium takes {needed}, and at most {bound} are let \
             pass; let more pass, or send at most {}.{} times as fast",
            fits / 10,
            fits % 10
        ))
    }

    /// The largest unit to agree on, in a graph that joins packets or in one whose packets have
    /// this much room.
    pub fn unit_len_max(&self, joined: bool, room: u32) -> u32 {
        match (&self.found.format, self.unit_max) {
            (Some(Format::Video(_)), _) => self.found.picture_unit_len_max(),
            (Some(Format::Audio(_)), _) if joined => SOUND_LEN,
            (None, Some(len)) => len,
            (None, None) if joined => RAW_LEN,
            _ => room,
        }
    }

    /// True where units are cut to what a packet takes.
    pub fn is_cut_to_fit(&self) -> bool {
        matches!(self.found.format, Some(Format::Audio(_)))
    }
}

/// What is assumed of a path that nobody has described.
pub(super) fn usual_path(on_loopback: bool) -> Path {
    let preset = match on_loopback {
        true => dacapo_qos::PathPreset::Loopback,
        false => dacapo_qos::PathPreset::Internet,
    };
    preset.path()
}

#[cfg(test)]
mod tests {
    use crate::Plan;
    use crate::plan::Assumptions;
    use dacapo_media::TestMovie;

    #[test]
    fn a_still_is_one_unit_as_long_as_it_is_however_long_it_is_shown() {
        let mut generator = TestMovie::default().generator().unwrap();
        let mut picture = Vec::new();
        generator.picture(0, &mut picture).unwrap();
        let path = std::env::temp_dir().join(format!("dacapo-need-{}.jpg", std::process::id()));
        std::fs::write(&path, &picture).unwrap();
        let text = format!(
            "[session]\nname = \"s\"\n[[flow]]\nname = \"a\"\nfrom = \"creator\"\n\
             source = {{ file = {:?} }}\n",
            path.display().to_string()
        );
        let plan = Plan::parse(&text, "still", &Assumptions::default());
        std::fs::remove_file(&path).unwrap();
        let need = &plan.unwrap().flows[0].need;
        let units = need.units(&need.attributes);
        assert_eq!((units.len_mean as usize, units.per_ks), (picture.len() + 24, 100));
        // The mean rate and the mean unit agree.
        let bps = picture.len() as u64 * 8 * units.per_ks / 1_000;
        assert_eq!(need.found.mean_bps, bps);
    }
}
