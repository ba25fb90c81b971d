//! [`PathAssumption`]: what is assumed of the network, whatever would be measured.
//!
//! A preset ([`PathPreset`]) and the figures that are set apart from it, as a session file
//! (`[path]`) or a command line (`wireless,loss=1%,delay=20ms`) gives them.
//!
//! | preset   | rate       | delay  | jitter | loss   | burst |
//! |----------|------------|--------|--------|--------|-------|
//! | loopback | 10 Gbit/s  | 50 us  | 50 us  | 0      | 1     |
//! | lan      | 1 Gbit/s   | 300 us | 200 us | 10 ppm | 1     |
//! | internet | 50 Mbit/s  | 30 ms  | 10 ms  | 0.5 %  | 3     |
//! | wireless | 20 Mbit/s  | 20 ms  | 20 ms  | 2 %    | 5     |
//!
//! A protocol that was chosen from an assumption is watched.
//!
//! Invariant: figures that were read are within the range of their [`PathKey`], so that what is
//! computed from them stays within 64 bits.

use dacapo_lift::Path;
use schemars::JsonSchema;

use crate::decimal::Decimal;
use crate::nearest::nearest;
use crate::problem::quoted;
use crate::text_error::TextError;
use crate::units::{Dimension, PPB};
use crate::word::Word;

/// The longest datagram that is assumed to get through: an Ethernet packet over IPv6.
const DATAGRAM_LEN: u32 = 1_452;

const MS: u64 = 1_000_000;
const HOUR_NS: u64 = 3_600_000 * MS;
const RATE_MAX: u64 = 1_000_000_000_000;
const BURST_MAX: u64 = 1_000_000;

/// Networks that are assumed by name.
// The schema of session files takes its descriptions from the comments of the variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum PathPreset {
    /// Both ends on one host: no loss, 50 us.
    Loopback,
    /// Both ends on one local network: hardly any loss, 300 us, 1 Gbit/s.
    Lan,
    /// Across the internet: 0.5 % loss in short bursts, 30 ms, 50 Mbit/s.
    #[default]
    Internet,
    /// Over a radio link: 2 % loss in bursts, 20 ms with as much jitter, 20 Mbit/s.
    Wireless,
}

impl Word for PathPreset {
    const ALL: &'static [(&'static str, Self)] = &[
        ("loopback", Self::Loopback),
        ("lan", Self::Lan),
        ("internet", Self::Internet),
        ("wireless", Self::Wireless),
    ];
}

impl PathPreset {
    /// The word in files and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Lan => "lan",
            Self::Internet => "internet",
            Self::Wireless => "wireless",
        }
    }

    /// The preset of a word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::of(name)
    }

    /// What it assumes.
    #[must_use]
    pub const fn path(self) -> Path {
        let (rate_bps, delay_ns, jitter_ns, loss_ppb, burst_milli) = match self {
            Self::Loopback => (10_000_000_000, 50_000, 50_000, 0, 1_000),
            Self::Lan => (1_000_000_000, 300_000, 200_000, PPB / 100_000, 1_000),
            Self::Internet => (50_000_000, 30 * MS, 10 * MS, PPB / 200, 3_000),
            Self::Wireless => (20_000_000, 20 * MS, 20 * MS, PPB / 50, 5_000),
        };
        Path { datagram_len: DATAGRAM_LEN, rate_bps, delay_ns, jitter_ns, loss_ppb, burst_milli }
    }
}

/// The figures of a path that can be set apart from its preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathKey {
    /// What it carries, in bit/s.
    Rate,
    /// The shortest one-way delay, in ns.
    Delay,
    /// By how much 99 of 100 packets exceed that at most, in ns.
    Jitter,
    /// The share of packets that is lost, in ppb.
    Loss,
    /// The mean length of a run of lost packets, in thousandths of a packet.
    Burst,
}

impl PathKey {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Rate, Self::Delay, Self::Jitter, Self::Loss, Self::Burst];

    /// The name in files and on command lines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "rate",
            Self::Delay => "delay",
            Self::Jitter => "jitter",
            Self::Loss => "loss",
            Self::Burst => "burst",
        }
    }

    /// How its values are written; none for a bare number in thousandths.
    const fn dimension(self) -> Option<Dimension> {
        match self {
            Self::Rate => Some(Dimension::Rate),
            Self::Delay | Self::Jitter => Some(Dimension::Duration),
            Self::Loss => Some(Dimension::Ratio),
            Self::Burst => None,
        }
    }

    /// The least and the greatest value, in base units.
    #[must_use]
    pub const fn range(self) -> (u64, u64) {
        match self {
            Self::Rate => (1, RATE_MAX),
            Self::Delay | Self::Jitter => (0, HOUR_NS),
            Self::Loss => (0, PPB),
            Self::Burst => (1_000, BURST_MAX),
        }
    }

    /// Reads a value, in base units; what is wrong with it and what is allowed otherwise.
    pub(crate) fn parse(self, text: &str) -> Result<u64, (String, String)> {
        let (low, high) = self.range();
        let value = match self.dimension() {
            Some(dimension) => {
                dimension.parse(text).map_err(|error| (error.what(), self.allowed()))?
            }
            None => Decimal::parse(text.trim())
                .and_then(|number| number.scaled(1_000))
                .map_err(|_| (format!("{} is not a run", quoted(text.trim())), self.allowed()))?,
        };
        if (low..=high).contains(&value) {
            return Ok(value);
        }
        Err((format!("{} is out of range", quoted(text.trim())), self.allowed()))
    }

    /// What a value may be, as a phrase for an error.
    pub(crate) fn allowed(self) -> String {
        let (low, high) = self.range();
        match self.dimension() {
            Some(dimension) => {
                let (low, high) = (dimension.format(low), dimension.format(high));
                format!("{}, from {low} to {high}", dimension.allowed())
            }
            None => "a number from 1 to 1000 with at most 3 decimals".to_owned(),
        }
    }
}

/// What is assumed of the network between the two ends of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathAssumption {
    /// Where the figures that are not given come from.
    pub preset: Option<PathPreset>,
    /// What it carries, in bit/s, above 0.
    pub rate_bps: Option<u64>,
    /// The shortest one-way delay, in ns.
    pub delay_ns: Option<u64>,
    /// By how much 99 of 100 packets exceed that at most, in ns.
    pub jitter_ns: Option<u64>,
    /// The share of packets that is lost, in ppb.
    pub loss_ppb: Option<u64>,
    /// The mean length of a run of lost packets, in thousandths of a packet, at least 1,000.
    pub burst_milli: Option<u64>,
}

impl PathAssumption {
    /// Reads an assumption from a command line: a preset, figures, or both, separated by commas:
    /// `lan`, `wireless,loss=1%,delay=20ms`.
    ///
    /// # Errors
    /// The first part that is wrong, with what may stand there.
    pub fn parse(text: &str) -> Result<Self, TextError> {
        TextError::check_len(text)?;
        let mut path = Self::default();
        for part in text.split(',').map(str::trim) {
            match part.split_once('=') {
                Some((name, value)) => path.read_figure(part, name.trim(), value)?,
                None => path.read_preset(part)?,
            }
        }
        Ok(path)
    }

    fn read_preset(&mut self, part: &str) -> Result<(), TextError> {
        let preset = PathPreset::of(part).ok_or_else(|| unknown(part, part))?;
        if self.preset.replace(preset).is_some() {
            return Err(TextError::new(part, "a second network", "one of them"));
        }
        Ok(())
    }

    fn read_figure(&mut self, part: &str, name: &str, value: &str) -> Result<(), TextError> {
        let key = PathKey::ALL.into_iter().find(|key| key.name() == name);
        let key = key.ok_or_else(|| unknown(part, name))?;
        let quantity = key.parse(value);
        let quantity = quantity.map_err(|(what, allowed)| TextError::new(part, what, allowed))?;
        if self.figure_mut(key).replace(quantity).is_some() {
            return Err(TextError::new(part, format!("{name} is given twice"), "each figure once"));
        }
        Ok(())
    }

    /// A figure that is set apart from the preset, in base units.
    #[must_use]
    pub const fn figure(&self, key: PathKey) -> Option<u64> {
        match key {
            PathKey::Rate => self.rate_bps,
            PathKey::Delay => self.delay_ns,
            PathKey::Jitter => self.jitter_ns,
            PathKey::Loss => self.loss_ppb,
            PathKey::Burst => self.burst_milli,
        }
    }

    pub(crate) const fn figure_mut(&mut self, key: PathKey) -> &mut Option<u64> {
        match key {
            PathKey::Rate => &mut self.rate_bps,
            PathKey::Delay => &mut self.delay_ns,
            PathKey::Jitter => &mut self.jitter_ns,
            PathKey::Loss => &mut self.loss_ppb,
            PathKey::Burst => &mut self.burst_milli,
        }
    }

    /// The path: the figures that are given, the others from the preset, which is
    /// [`PathPreset::Internet`] where none is named.
    #[must_use]
    pub fn path(&self) -> Path {
        let preset = self.preset.unwrap_or_default().path();
        Path {
            rate_bps: self.rate_bps.unwrap_or(preset.rate_bps),
            delay_ns: self.delay_ns.unwrap_or(preset.delay_ns),
            jitter_ns: self.jitter_ns.unwrap_or(preset.jitter_ns),
            loss_ppb: self.loss_ppb.unwrap_or(preset.loss_ppb),
            burst_milli: self.burst_milli.unwrap_or(preset.burst_milli),
            ..preset
        }
    }
}

/// A word that is neither a preset nor a figure.
fn unknown(part: &str, word: &str) -> TextError {
    let presets = PathPreset::words();
    let figures = PathKey::ALL.map(|key| format!("{}=", key.name()));
    let allowed = format!("one of {}; {}", presets.join(", "), figures.join(", "));
    let names = presets.into_iter().chain(PathKey::ALL.map(PathKey::name));
    let hint = match nearest(word, names) {
        Some(near) if near == word && PathPreset::of(near).is_some() => {
            " takes no value".to_owned()
        }
        Some(near) if near == word => " needs a value".to_owned(),
        Some(near) => format!(" is neither a network nor a figure (did you mean \"{near}\"?)"),
        None => " is neither a network nor a figure".to_owned(),
    };
    TextError::new(part, format!("{}{hint}", quoted(word)), allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        PathAssumption::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn presets_are_what_their_table_says() {
        let lan = PathAssumption::parse("lan").unwrap().path();
        assert_eq!((lan.rate_bps, lan.delay_ns, lan.jitter_ns), (1_000_000_000, 300_000, 200_000));
        assert_eq!((lan.loss_ppb, lan.burst_milli, lan.datagram_len), (10_000, 1_000, 1_452));
        let internet = PathPreset::Internet.path();
        assert_eq!((internet.loss_ppb, internet.burst_milli), (5_000_000, 3_000));
        let wireless = PathPreset::Wireless.path();
        assert_eq!((wireless.loss_ppb, wireless.burst_milli), (20_000_000, 5_000));
        assert_eq!(PathPreset::Loopback.path().loss_ppb, 0);
        assert_eq!(PathAssumption::default().path(), PathPreset::Internet.path());
        for (word, preset) in PathPreset::ALL {
            assert_eq!((preset.name(), PathPreset::from_name(word)), (*word, Some(*preset)));
        }
    }

    #[test]
    fn a_figure_replaces_that_of_the_preset_in_any_order() {
        let path = PathAssumption::parse("wireless,loss=1%,delay=20ms").unwrap();
        assert_eq!((path.preset, path.loss_ppb), (Some(PathPreset::Wireless), Some(PPB / 100)));
        assert_eq!(path.path(), Path { loss_ppb: PPB / 100, ..PathPreset::Wireless.path() });
        let turned = PathAssumption::parse(" delay = 20 ms , loss=0.01, wireless ").unwrap();
        assert_eq!(turned, path);
        let bare = PathAssumption::parse("rate=4Mbit/s,jitter=0ns,burst=1.125").unwrap();
        assert_eq!((bare.rate_bps, bare.jitter_ns), (Some(4_000_000), Some(0)));
        assert_eq!((bare.preset, bare.burst_milli), (None, Some(1_125)));
        assert_eq!(bare.path().loss_ppb, PathPreset::Internet.path().loss_ppb);
        assert_eq!(
            PathKey::ALL.map(|key| bare.figure(key).is_some()),
            [true, false, true, false, true]
        );
    }

    #[test]
    fn the_ends_of_every_range_are_allowed_and_no_more() {
        for text in ["rate=1bit/s", "rate=1000Gbit/s", "delay=60min", "loss=100%", "burst=1000"] {
            assert!(PathAssumption::parse(text).is_ok(), "{text}");
        }
        for text in [
            "rate=0bit/s",
            "rate=1001Gbit/s",
            "delay=61min",
            "loss=101%",
            "burst=1000.001",
            "burst=0.999",
        ] {
            assert!(wrong(text).contains("is out of range; allowed: a number"), "{}", wrong(text));
        }
    }

    #[test]
    fn a_wrong_part_is_named_with_what_is_allowed() {
        assert_eq!(
            wrong("lan,lose=1%"),
            "\"lose=1%\": \"lose\" is neither a network nor a figure (did you mean \"loss\"?); \
             allowed: one of loopback, lan, internet, wireless; rate=, delay=, jitter=, loss=, \
             burst="
        );
        assert!(wrong("wirless").contains("did you mean \"wireless\"?"));
        assert!(wrong("lan,internet").contains("\"internet\": a second network"));
        assert!(wrong("loss").contains("\"loss\" needs a value"));
        assert!(wrong("lan=1").contains("\"lan\" takes no value"));
        assert!(wrong("loss=1%,loss=2%").contains("\"loss=2%\": loss is given twice"));
        assert!(wrong("delay=20").contains("the unit is missing"));
        assert!(
            wrong("burst=1.0001").contains("\"1.0001\" is not a run; allowed: a number from 1")
        );
        assert!(wrong("").contains("\"\" is neither a network nor a figure"));
        assert!(wrong(&"x".repeat(5_000)).contains("the text has 5000 bytes"));
    }
}
