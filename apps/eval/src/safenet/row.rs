//! [`Row`]: the points of one level, and the line through them.

use super::super::line::{line_through, residuals};
use super::then::Then;
use dacapo_safenet::measure::Cast;

/// Where is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Users of the message service.
    User,
    /// Users of XTP.
    Transport,
    /// Plain sockets of UDP: what a program without any of this has.
    Udp,
    /// Frames of Ethernet.
    Mac,
}

impl Level {
    /// Its name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Transport => "transport",
            Self::Udp => "udp",
            Self::Mac => "mac",
        }
    }
}

/// A length of messages.
pub struct Point {
    /// Bytes.
    pub len: usize,
    /// Half of the mean round trip, µs.
    pub latency_us: f64,
    /// From the first message sent to the last, Mbit/s of users' bytes.
    pub mbit_s: f64,
    /// The share of messages sent one way that arrived at the receiver that got fewest; where
    /// nothing can be lost it is 1.
    pub arrived: f64,
}

/// The points of one level and cast.
pub struct Row {
    /// What it is called.
    pub name: &'static str,
    /// Where.
    pub level: Level,
    /// To whom.
    pub cast: Cast,
    /// Where the ends are, in words.
    pub place: &'static str,
    /// How frames come in: `ring` or `calls`; of the level of frames only.
    pub frames: Option<&'static str>,
    /// What the document has of it.
    pub then: Option<Then>,
    /// By length.
    pub points: Vec<Point>,
}

impl Row {
    fn latencies(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|point| (point.len as f64, point.latency_us)).collect()
    }

    /// The line through the latencies: µs without bytes, and per byte.
    pub fn fit(&self) -> Option<(f64, f64)> {
        line_through(&self.latencies())
    }

    /// How far each latency is above the line, µs.
    pub fn residuals(&self) -> Vec<f64> {
        self.fit().map_or_else(Vec::new, |fit| residuals(&self.latencies(), fit))
    }
}

/// All rows of a run, and how it was made.
pub struct Results {
    /// What carries packets: `memory`, `udp`, `ip`, `ethernet`.
    pub network: &'static str,
    /// Whether XTP's checksum covers the bytes.
    pub is_checked: bool,
    /// By level and cast.
    pub rows: Vec<Row>,
    /// Levels that could not be measured, and why.
    pub left_out: Vec<(&'static str, String)>,
}

impl Results {
    /// By how much users' latency without bytes is above that of plain UDP, µs; and its rise per
    /// byte, as a multiple.
    pub fn beside_udp(&self) -> Option<(f64, f64)> {
        let fit = |level| {
            let row = self.rows.iter().find(|row| (row.level, row.cast) == (level, Cast::Unicast));
            row.and_then(Row::fit)
        };
        let ((user, rise), (udp, plain_rise)) = (fit(Level::User)?, fit(Level::Udp)?);
        (plain_rise > 0.0).then(|| (user - udp, rise / plain_rise))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(level: Level, at_0: f64, rise: f64) -> Row {
        let point = |len: usize| Point {
            len,
            latency_us: at_0 + rise * len as f64,
            mbit_s: 0.0,
            arrived: 1.0,
        };
        let points = [0, 100, 1_000].map(point).into();
        Row { name: "", level, cast: Cast::Unicast, place: "", frames: None, then: None, points }
    }

    #[test]
    fn users_stand_beside_plain_udp() {
        let rows = vec![row(Level::User, 12.0, 0.003), row(Level::Udp, 10.0, 0.002)];
        let mut results = Results { network: "udp", is_checked: true, rows, left_out: Vec::new() };
        let (above, times) = results.beside_udp().unwrap();
        assert!((above - 2.0).abs() < 1e-6 && (times - 1.5).abs() < 1e-6, "{above} {times}");
        results.rows.pop();
        assert_eq!(results.beside_udp(), None);
    }
}
