//! [`session`]: a request made of a number, as the session file that a person would write.
//!
//! ```text
//!   number -> path    a named network, or figures over what networks have
//!          -> units   20 B to 1 MB, once to a thousand times a second, at most half of the path
//!          -> asked   each attribute or not; times of what the path's delay makes possible
//! ```
//!
//! What spans powers of ten is drawn by its logarithm. Nothing here knows a module: how often one
//! is chosen is what is to be found out.
//!
//! Invariant: a request follows from its number alone.

use crate::choice::PATHS;
use dacapo_base::Random;
use std::fmt::Write as _;

/// The session file of a request.
pub fn session(number: u64) -> String {
    let random = &mut Random::from_number(number);
    let path = path(random);
    let (unit_len, per_s) = units(random, path.rate_bps);
    let mut text = format!(
        "[session]\nname = \"drawn-{number}\"\n\n[path]\n{}\n[[flow]]\nname = \"data\"\n\
         from = \"creator\"\nsource = {{ raw = true }}\nunit_max = \"{unit_len} B\"\n\n\
         [flow.attributes]\nframe_rate = \"{per_s} /s\"\n",
        path.text
    );
    asked(random, path.delay_us, &mut text);
    text
}

/// What is assumed of the network.
struct Drawn {
    text: String,
    rate_bps: u64,
    delay_us: u64,
}

fn path(random: &mut Random) -> Drawn {
    if random.chance(0.5) {
        let network = PATHS[random.below(PATHS.len() as u64) as usize];
        let path = network.path();
        let text = format!("assume = \"{}\"\n", network.name());
        return Drawn { text, rate_bps: path.rate_bps, delay_us: path.delay_ns / 1_000 };
    }
    let rate_kbps = logarithmic(random, 1_000.0, 1_000_000.0);
    let delay_us = logarithmic(random, 100.0, 300_000.0);
    let jitter_us = random.below(delay_us + 1);
    let loss_ppm = if random.chance(1.0 / 3.0) { 10 } else { logarithmic(random, 100.0, 1e5) };
    let burst_tenths = logarithmic(random, 10.0, 100.0);
    let text = format!(
        "rate = \"{rate_kbps} kbit/s\"\ndelay = \"{delay_us} us\"\njitter = \"{jitter_us} us\"\n\
         loss = \"{loss_ppm} ppm\"\nburst = {}.{}\n",
        burst_tenths / 10,
        burst_tenths % 10
    );
    Drawn { text, rate_bps: rate_kbps * 1_000, delay_us }
}

/// How long units are, and how many there are a second: together at most half of the path.
fn units(random: &mut Random, rate_bps: u64) -> (u64, u64) {
    let len = logarithmic(random, 20.0, 1e6).min(rate_bps / 16);
    let most = rate_bps / 16 / len;
    (len, logarithmic(random, 1.0, 1_000.0).clamp(1, most.max(1)))
}

fn asked(random: &mut Random, delay_us: u64, text: &mut String) {
    let mut add = |line: String| {
        let _ = writeln!(text, "{line}");
    };
    if random.chance(0.4) {
        add("order = \"ordered\"".to_owned());
    }
    if random.chance(0.3) {
        add("integrity = \"checked\"".to_owned());
    }
    if random.chance(0.2) {
        add("duplicates = \"none\"".to_owned());
    }
    match random.below(4) {
        0 => add("loss = \"0 %\"".to_owned()),
        1 => add(format!("loss = \"{} ppm\"", logarithmic(random, 10.0, 50_000.0))),
        _ => {}
    }
    if random.chance(0.1) {
        add("newest = \"arrives\"".to_owned());
    }
    // As long as a packet takes, and a fifth; or up to twenty times that, and 10 ms at least.
    let least = delay_us as f64 * 1.2;
    let most = (least * 20.0).max(10_000.0);
    match random.below(4) {
        0 => add(format!("delay = \"{} us\"", logarithmic(random, least, most))),
        1 => add(format!("deadline = \"{} us\"", logarithmic(random, least, most))),
        _ => {}
    }
}

/// Between these, as often between 1 and 10 as between 10 and 100.
fn logarithmic(random: &mut Random, least: f64, most: f64) -> u64 {
    (least * (most / least).powf(random.unit())).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use dacapo_qos::SessionFile;

    #[test]
    fn every_request_is_a_session_file_and_the_same_each_time() {
        for number in 0..500 {
            let text = session(number);
            let read = SessionFile::parse(&text, "drawn");
            assert!(read.is_ok(), "{}\n{text}", read.unwrap_err());
            assert_eq!(text, session(number));
        }
        assert_ne!(session(1), session(2));
    }
}
