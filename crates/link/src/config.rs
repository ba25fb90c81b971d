//! [`LinkConfig`]: what a link does to what it carries, as plain data, and its limits.
//!
//! A configuration can be shared, compared, printed and parsed (`parse.rs`, `display.rs`), and
//! given to a running link ([`crate::Link::set_config`]).
//!
//! Invariants: [`LinkConfig::default`] is a perfect link (no delay, no loss, no limit of rate);
//! what passes [`LinkConfig::validate`] cannot make a link misbehave or use unbounded memory.

use crate::aqm::Aqm;
use crate::delay::JitterShape;
use crate::loss::{Loss, check_probability};
use crate::trace::TraceSource;
use dacapo_base::Time;
use std::fmt;
use std::time::Duration;

/// A span of time during which the link is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    /// The first moment at which nothing enters the link.
    pub from: Time,
    /// The first moment at which items enter again.
    pub to: Time,
}

impl Window {
    /// Whether `now` lies in the window.
    #[must_use]
    pub fn contains(&self, now: Time) -> bool {
        self.from <= now && now < self.to
    }
}

/// What happens to an item that is larger than the MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MtuPolicy {
    /// It vanishes without a sign to the sender.
    #[default]
    BlackHole,
}

/// A limit of size, possibly from some moment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mtu {
    /// The largest item that passes, bytes.
    pub len_max: usize,
    /// From when on the limit holds; before, every size passes.
    pub from: Time,
    /// What happens to larger items.
    pub policy: MtuPolicy,
}

impl Mtu {
    /// Items above `len_max` bytes vanish, from the start.
    #[must_use]
    pub const fn black_hole(len_max: usize) -> Self {
        Self { len_max, from: Time::ZERO, policy: MtuPolicy::BlackHole }
    }

    /// Whether an item of `len` bytes passes at `now`.
    #[must_use]
    pub fn passes(&self, now: Time, len: usize) -> bool {
        now < self.from || len <= self.len_max
    }
}

/// How much may wait for the transmitter; the item that is being transmitted does not count.
///
/// With a trace that is the next one in turn, also while there is no opportunity for it. Only where
/// the queue is managed ([`LinkConfig::aqm`]) it still waits then, because its fate is open, and
/// counts: such a link holds one less. What comes while nothing is there is always taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueLimit {
    /// Items, at most. 0: what finds the transmitter busy is dropped.
    pub packets: usize,
    /// Bytes, at most.
    pub bytes: usize,
}

impl QueueLimit {
    /// Whether one of `len` bytes may wait beside those that do: so many, of so many bytes.
    pub(crate) const fn has_capacity(self, packets: usize, bytes: usize, len: usize) -> bool {
        packets < self.packets && bytes.saturating_add(len) <= self.bytes
    }
}

impl Default for QueueLimit {
    /// 1,000 items (the queue of a Linux interface) and 1.5 MB (as many of 1,500 bytes).
    fn default() -> Self {
        Self { packets: 1_000, bytes: 1_500_000 }
    }
}

/// What a link does. The default is a perfect link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// Propagation delay, the centre of the jitter; at most [`LinkConfig::DELAY_MAX`].
    pub delay: Duration,
    /// Variation of the delay: half width (uniform) or standard deviation (normal); at most
    /// [`LinkConfig::DELAY_MAX`].
    pub jitter: Duration,
    /// The distribution of the jitter.
    pub jitter_shape: JitterShape,
    /// Whether the link is first in, first out in spite of jitter and changes of delay (the
    /// default). An item that would overtake waits for the one before it, so items closer together
    /// than the jitter bunch near its upper end. Hold-back ([`LinkConfig::reorder`]) is exempt.
    pub keep_order: bool,
    /// Loss before the queue.
    pub loss: Loss,
    /// Probability that an item arrives twice; the copy has a delay of its own.
    pub duplicate: f64,
    /// Probability that an item is held back, so that later ones overtake it.
    pub reorder: f64,
    /// How long an item is held back: uniform above zero up to this; at most
    /// [`LinkConfig::DELAY_MAX`].
    pub reorder_by: Duration,
    /// Probability of corruption that a checksum below the receiver sees: dropped after it used
    /// the link.
    pub corrupt: f64,
    /// Probability of corruption that arrives.
    pub corrupt_undetected: f64,
    /// Rate of the transmitter, bits per second; `None` is unlimited.
    pub rate_bits_per_s: Option<u64>,
    /// What the transmitter sends when, in place of a rate.
    pub trace: Option<TraceSource>,
    /// The queue before the transmitter (tail drop). Without rate and trace nothing ever waits.
    pub queue: QueueLimit,
    /// What manages that queue before it is full; it needs a rate or a trace.
    pub aqm: Option<Aqm>,
    /// Whether everything that enters the link loses its congestion codepoint and is Not-ECT from
    /// then on, as behind some hops of real networks. The link's own [`LinkConfig::aqm`] sees it
    /// like this, too.
    pub ecn_clear: bool,
    /// When the link is cut; at most [`LinkConfig::PARTITION_COUNT_MAX`].
    pub partitions: Vec<Window>,
    /// A limit of size; `None` is unlimited.
    pub mtu: Option<Mtu>,
    /// Items in flight, at most: the bound on memory. What comes on top is dropped.
    pub in_flight_max: usize,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            jitter_shape: JitterShape::Uniform,
            keep_order: true,
            loss: Loss::None,
            duplicate: 0.0,
            reorder: 0.0,
            reorder_by: Duration::from_millis(10),
            corrupt: 0.0,
            corrupt_undetected: 0.0,
            rate_bits_per_s: None,
            trace: None,
            queue: QueueLimit::default(),
            aqm: None,
            ecn_clear: false,
            partitions: Vec::new(),
            mtu: None,
            in_flight_max: 65_536,
        }
    }
}

impl LinkConfig {
    /// The longest delay, jitter and hold-back.
    pub const DELAY_MAX: Duration = Duration::from_secs(60);
    /// The highest rate, bits per second.
    pub const RATE_MAX: u64 = 1_000_000_000_000;
    /// The longest queue, items.
    pub const QUEUE_PACKETS_MAX: usize = 1 << 20;
    /// The longest queue, bytes.
    pub const QUEUE_BYTES_MAX: usize = 1 << 30;
    /// The most items in flight.
    pub const IN_FLIGHT_MAX: usize = 1 << 20;
    /// The most windows of partition.
    pub const PARTITION_COUNT_MAX: usize = 1_024;

    /// Checks every figure.
    ///
    /// # Errors
    /// The first figure that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_probabilities()?;
        self.validate_delays()?;
        self.validate_bounds()?;
        self.validate_transmitter()?;
        match self.partitions.iter().find(|window| window.from >= window.to) {
            Some(&window) => Err(ConfigError::Window { window }),
            None => Ok(()),
        }
    }

    fn validate_probabilities(&self) -> Result<(), ConfigError> {
        self.loss.validate()?;
        check_probability("dup", self.duplicate)?;
        check_probability("reorder", self.reorder)?;
        check_probability("corrupt", self.corrupt)?;
        check_probability("corrupt-undetected", self.corrupt_undetected)?;
        let sum = self.corrupt + self.corrupt_undetected;
        check_probability("sum of corrupt and corrupt-undetected", sum)
    }

    fn validate_delays(&self) -> Result<(), ConfigError> {
        let delays =
            [("delay", self.delay), ("jitter", self.jitter), ("reorder-by", self.reorder_by)];
        for (name, value) in delays {
            if value > Self::DELAY_MAX {
                return Err(ConfigError::Delay { name, value });
            }
        }
        if self.reorder > 0.0 && self.reorder_by.is_zero() {
            return Err(ConfigError::HoldBack);
        }
        Ok(())
    }

    fn validate_transmitter(&self) -> Result<(), ConfigError> {
        if self.rate_bits_per_s.is_some() && self.trace.is_some() {
            return Err(ConfigError::RateAndTrace);
        }
        let Some(aqm) = self.aqm else { return Ok(()) };
        if self.rate_bits_per_s.is_none() && self.trace.is_none() {
            return Err(ConfigError::AqmAlone);
        }
        let times = [("aqm-target", Some(aqm.target())), ("aqm-interval", aqm.interval())];
        for (name, value) in times {
            let refused = value.filter(|it| !(Aqm::TIME_MIN..=Aqm::TIME_MAX).contains(it));
            if let Some(value) = refused {
                return Err(ConfigError::AqmTime { name, value });
            }
        }
        Ok(())
    }

    fn validate_bounds(&self) -> Result<(), ConfigError> {
        let mtu = self.mtu.map_or(1, |mtu| mtu.len_max as u64);
        let windows = self.partitions.len() as u64;
        let bounds = [
            ("rate", self.rate_bits_per_s.unwrap_or(1), 1, Self::RATE_MAX),
            ("queue", self.queue.packets as u64, 0, Self::QUEUE_PACKETS_MAX as u64),
            ("queue-bytes", self.queue.bytes as u64, 0, Self::QUEUE_BYTES_MAX as u64),
            ("mtu", mtu, 1, u64::MAX),
            ("in-flight", self.in_flight_max as u64, 1, Self::IN_FLIGHT_MAX as u64),
            ("number of partitions", windows, 0, Self::PARTITION_COUNT_MAX as u64),
        ];
        for (name, value, min, max) in bounds {
            if !(min..=max).contains(&value) {
                return Err(ConfigError::Bound { name, value, min, max });
            }
        }
        Ok(())
    }
}

/// A [`LinkConfig`] that no link can run. `name` is the key of the configuration text.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ConfigError {
    /// A queue is to be managed in which nothing ever waits.
    AqmAlone,
    /// A time of an active queue management is not in [`Aqm::TIME_MIN`] to [`Aqm::TIME_MAX`].
    AqmTime {
        /// Which.
        name: &'static str,
        /// What it is.
        value: Duration,
    },
    /// A number is out of its range.
    Bound {
        /// Which.
        name: &'static str,
        /// What it is.
        value: u64,
        /// The least that is allowed.
        min: u64,
        /// The most that is allowed.
        max: u64,
    },
    /// No chain of bursts has both means.
    Burst {
        /// The wanted share of loss.
        mean_loss: f64,
        /// The wanted mean length of a burst, items.
        mean_burst_len: f64,
    },
    /// No bursts in time have both means.
    BurstTime {
        /// The wanted share of loss.
        mean_loss: f64,
        /// The wanted mean length of a burst.
        mean: Duration,
    },
    /// A delay is longer than [`LinkConfig::DELAY_MAX`].
    Delay {
        /// Which.
        name: &'static str,
        /// What it is.
        value: Duration,
    },
    /// Items are to be held back for no time.
    HoldBack,
    /// A probability is not in 0 to 1.
    Probability {
        /// Which.
        name: &'static str,
        /// What it is.
        value: f64,
    },
    /// There are both a rate and a trace.
    RateAndTrace,
    /// A window of partition ends before it begins.
    Window {
        /// Which.
        window: Window,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::AqmAlone => {
                write!(f, "link: aqm needs rate or trace beside it: without one nothing ever waits")
            }
            Self::AqmTime { name, value } => {
                let (min, max) = (Aqm::TIME_MIN, Aqm::TIME_MAX);
                write!(f, "link: {name} is {value:?}; choose {min:?} to {max:?}")
            }
            Self::Bound { name, value, min, max: u64::MAX } => {
                write!(f, "link: {name} is {value}; choose at least {min}")
            }
            Self::Bound { name, value, min, max } => {
                write!(f, "link: {name} is {value}; choose {min} to {max}")
            }
            Self::Burst { mean_loss, mean_burst_len } => write!(
                f,
                "link: no bursts of mean length {mean_burst_len} lose {}% on average; choose \
                 burst 1 or more and loss at most burst / (burst + 1)",
                mean_loss * 100.0
            ),
            Self::BurstTime { mean_loss, mean } => write!(
                f,
                "link: no bursts of {mean:?} on average lose {}%; choose burst 10us to 3600s and \
                 loss below 100%",
                mean_loss * 100.0
            ),
            Self::Delay { name, value } => {
                write!(f, "link: {name} is {value:?}; choose at most {:?}", LinkConfig::DELAY_MAX)
            }
            Self::HoldBack => {
                write!(f, "link: reorder needs reorder-by above zero, the time to hold items back")
            }
            Self::Probability { name, value } => {
                write!(f, "link: {name} is {value}; a probability lies in 0 to 1 (0% to 100%)")
            }
            Self::RateAndTrace => {
                write!(f, "link: rate and trace exclude each other: leave one of them out")
            }
            Self::Window { window: Window { from, to } } => {
                write!(f, "link: the partition {from:?} to {to:?} ends before it begins")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut LinkConfig)) -> ConfigError {
        let mut config = LinkConfig::default();
        change(&mut config);
        config.validate().expect_err("an invalid configuration")
    }

    #[test]
    fn the_default_and_the_largest_figures_are_valid() {
        assert_eq!(LinkConfig::default().validate(), Ok(()));
        let largest = LinkConfig {
            delay: LinkConfig::DELAY_MAX,
            jitter: LinkConfig::DELAY_MAX,
            reorder_by: LinkConfig::DELAY_MAX,
            loss: Loss::Random { p: 1.0 },
            duplicate: 1.0,
            reorder: 1.0,
            corrupt: 1.0,
            rate_bits_per_s: Some(LinkConfig::RATE_MAX),
            ..LinkConfig::default()
        };
        assert_eq!(largest.validate(), Ok(()));
    }

    #[test]
    fn what_is_no_probability_is_refused_by_name() {
        for value in [-0.1, 1.000_001, f64::NAN, f64::INFINITY] {
            let loss = refused(|config| config.loss = Loss::Random { p: value });
            assert!(loss.to_string().contains("loss is"), "{loss}");
            let dup = refused(|config| config.duplicate = value);
            assert!(dup.to_string().contains("dup is"), "{dup}");
            let bad = Loss::GilbertElliott {
                p_enter: 0.1,
                p_leave: 0.1,
                loss_good: 0.0,
                loss_bad: value,
            };
            let bad = refused(|config| config.loss = bad);
            assert!(bad.to_string().contains("gilbert loss_bad is"), "{bad}");
            refused(|config| config.reorder = value);
            refused(|config| config.corrupt = value);
            refused(|config| config.corrupt_undetected = value);
        }
        refused(|config| (config.corrupt, config.corrupt_undetected) = (0.6, 0.6));
    }

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        let long = LinkConfig::DELAY_MAX + Duration::from_nanos(1);
        refused(|config| config.delay = long);
        refused(|config| config.jitter = long);
        refused(|config| config.reorder_by = long);
        refused(|config| (config.reorder, config.reorder_by) = (0.1, Duration::ZERO));
        refused(|config| config.rate_bits_per_s = Some(0));
        refused(|config| config.rate_bits_per_s = Some(LinkConfig::RATE_MAX + 1));
        refused(|config| config.queue.packets = LinkConfig::QUEUE_PACKETS_MAX + 1);
        refused(|config| config.queue.bytes = LinkConfig::QUEUE_BYTES_MAX + 1);
        refused(|config| config.mtu = Some(Mtu::black_hole(0)));
        refused(|config| config.in_flight_max = 0);
        let empty = Window { from: Time::from_millis(5), to: Time::from_millis(5) };
        refused(|config| config.partitions = vec![empty]);
        let window = Window { from: Time::ZERO, to: Time::NEVER };
        refused(|config| config.partitions = vec![window; 1_025]);
    }

    #[test]
    fn a_rate_and_a_trace_exclude_each_other() {
        let trace = Some(TraceSource::Cellular { seed: 1 });
        let both = refused(|config| {
            (config.rate_bits_per_s, config.trace) = (Some(1_000_000), trace.clone());
        });
        assert!(both.to_string().contains("leave one of them out"), "{both}");
        let config = LinkConfig { trace, ..LinkConfig::default() };
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn a_managed_queue_needs_something_to_wait_for_and_times_that_can_be() {
        let trace = Some(TraceSource::Cellular { seed: 1 });
        let rate = Some(1_000_000);
        refused(|config| config.aqm = Some(Aqm::CODEL));
        for value in [Duration::ZERO, Aqm::TIME_MAX + Duration::from_nanos(1)] {
            let usual = Duration::from_millis(5);
            for aqm in [
                Aqm::CoDel { target: value, interval: usual },
                Aqm::CoDel { target: usual, interval: value },
                Aqm::DualPi2 { target: value },
            ] {
                let error =
                    refused(|config| (config.rate_bits_per_s, config.aqm) = (rate, Some(aqm)));
                assert!(matches!(error, ConfigError::AqmTime { .. }), "{error}");
            }
        }
        for aqm in [Aqm::CODEL, Aqm::DUALPI2] {
            let (trace, aqm) = (trace.clone(), Some(aqm));
            let config = LinkConfig { trace, aqm, ..LinkConfig::default() };
            assert_eq!(config.validate(), Ok(()));
        }
    }
}
