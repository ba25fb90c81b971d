//! [`LinkConfig`] to configuration text; the grammar is in `parse.rs`.
//!
//! Invariants: the text parses to an equal configuration, to the last bit of every probability;
//! only what differs from the perfect link is printed. For figures that the grammar cannot say (a
//! configuration that is not valid, the name of a trace with a comma) the text is for people only.

use crate::aqm::Aqm;
use crate::config::{LinkConfig, QueueLimit};
use crate::loss::Loss;
use crate::parse::{RATE_UNITS, SIZE_UNITS, TIME_UNITS, probability};
use dacapo_base::Time;
use std::fmt;
use std::time::Duration;

impl fmt::Display for LinkConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pairs = Pairs(Vec::new());
        pairs.push_delays(self);
        pairs.push_loss(&self.loss);
        pairs.push_chances(self);
        pairs.push_bounds(self);
        if pairs.0.is_empty() { f.write_str("perfect") } else { f.write_str(&pairs.0.join(",")) }
    }
}

struct Pairs(Vec<String>);

impl Pairs {
    fn push(&mut self, key: &str, value: &str) {
        self.0.push(format!("{key}={value}"));
    }

    fn push_delays(&mut self, config: &LinkConfig) {
        let default = LinkConfig::default();
        if config.delay != default.delay {
            self.push("delay", &time(config.delay));
        }
        if config.jitter != default.jitter {
            self.push("jitter", &time(config.jitter));
        }
        if config.jitter_shape != default.jitter_shape {
            self.push("shape", config.jitter_shape.name());
        }
        if !config.keep_order {
            self.push("keep-order", "no");
        }
    }

    fn push_loss(&mut self, loss: &Loss) {
        match *loss {
            Loss::None => {}
            Loss::Random { p } => self.push("loss", &percent(p)),
            Loss::Timed { share, mean } => {
                self.push("loss", &percent(share));
                self.push("burst", &time(mean));
            }
            Loss::GilbertElliott { p_enter, p_leave, loss_good, loss_bad } => {
                if let Some((mean_loss, burst_len)) = as_burst(loss) {
                    self.push("loss", &percent(mean_loss));
                    self.push("burst", &burst_len.to_string());
                } else {
                    let parts = [p_enter, p_leave, loss_good, loss_bad].map(percent);
                    self.push("gilbert", &parts.join(":"));
                }
            }
        }
    }

    fn push_chances(&mut self, config: &LinkConfig) {
        let default = LinkConfig::default();
        for (key, p) in [
            ("dup", config.duplicate),
            ("reorder", config.reorder),
            ("corrupt", config.corrupt),
            ("corrupt-undetected", config.corrupt_undetected),
        ] {
            if p != 0.0 {
                self.push(key, &percent(p));
            }
        }
        if config.reorder_by != default.reorder_by {
            self.push("reorder-by", &time(config.reorder_by));
        }
    }

    fn push_bounds(&mut self, config: &LinkConfig) {
        let default = LinkConfig::default();
        if let Some(rate) = config.rate_bits_per_s {
            self.push("rate", &with_unit(rate, &RATE_UNITS));
        }
        if let Some(trace) = &config.trace {
            self.push("trace", &trace.to_string());
        }
        let QueueLimit { packets, bytes } = config.queue;
        if packets != default.queue.packets {
            self.push("queue", &packets.to_string());
        }
        if bytes != default.queue.bytes {
            self.push("queue-bytes", &with_unit(bytes as u64, &SIZE_UNITS));
        }
        if let Some(aqm) = config.aqm {
            self.push_aqm(aqm);
        }
        if config.ecn_clear {
            self.push("ecn", "clear");
        }
        if !config.partitions.is_empty() {
            let windows = config.partitions.iter();
            let windows =
                windows.map(|window| format!("{}..{}", point(window.from), point(window.to)));
            self.push("partition", &windows.collect::<Vec<_>>().join("+"));
        }
        if let Some(mtu) = config.mtu {
            self.push("mtu", &mtu.len_max.to_string());
            if mtu.from != Time::ZERO {
                self.push("mtu-from", &point(mtu.from));
            }
        }
        if config.in_flight_max != default.in_flight_max {
            self.push("in-flight", &config.in_flight_max.to_string());
        }
    }

    fn push_aqm(&mut self, aqm: Aqm) {
        self.push("aqm", aqm.name());
        let recommended = aqm.recommended();
        if aqm.target() != recommended.target() {
            self.push("aqm-target", &time(aqm.target()));
        }
        if let Some(interval) = aqm.interval()
            && Some(interval) != recommended.interval()
        {
            self.push("aqm-interval", &time(interval));
        }
    }
}

/// The two means from which [`Loss::burst`] gives exactly this model, if there are any.
fn as_burst(loss: &Loss) -> Option<(f64, f64)> {
    let mean_loss = loss.mean_loss();
    let burst_len = loss.mean_burst_len()?;
    // The means come out of a division; the number that was meant is the round one next to it.
    [(mean_loss, burst_len), (round(mean_loss), round(burst_len))]
        .into_iter()
        .rev()
        .find(|&(mean_loss, burst_len)| Loss::burst(mean_loss, burst_len).as_ref() == Ok(loss))
}

/// Rounded to nine digits after the point.
fn round(value: f64) -> f64 {
    format!("{value:.9}").parse().unwrap_or(value)
}

/// As percent when that reads back as the same number, else as it is.
fn percent(p: f64) -> String {
    let percent = format!("{}%", round(p * 100.0));
    if probability(&percent) == Ok(p) { percent } else { p.to_string() }
}

fn time(duration: Duration) -> String {
    with_unit(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), &TIME_UNITS)
}

fn point(time: Time) -> String {
    if time == Time::NEVER { "never".into() } else { with_unit(time.as_nanos(), &TIME_UNITS) }
}

/// In the largest unit that needs no fraction.
fn with_unit(value: u64, units: &[(&str, u64)]) -> String {
    let exact = units.iter().find(|&&(_, unit)| value >= unit && value.is_multiple_of(unit));
    match exact.or(units.last()) {
        Some(&(name, unit)) => format!("{}{name}", value / unit),
        None => value.to_string(),
    }
}
