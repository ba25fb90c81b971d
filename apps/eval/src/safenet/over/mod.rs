//! The levels over a network: a near end here, and far ends in threads of their own.
//!
//! ```text
//!   Near (near.rs, this thread)             Far (far.rs, a thread each)
//!   users.rs    MessageHost   --messages-->  echoes, or takes and counts
//!   streams.rs  Host of XTP   --streams--->  the same
//!   plain.rs    datagrams or frames, no XTP  the same
//!                    `-- place.rs: loopback, or a cable between two namespaces --'
//! ```
//!
//! Method: latency is half of the mean round trip of an echo; throughput is counted at the sender,
//! from the first message to the last, as the document has it. What is lost is said beside it.

mod cable;
mod far;
mod near;
mod place;
mod plain;
mod streams;
mod users;

use super::row::{Level, Point, Results, Row};
use super::then;
use super::{LENS, TRIED, filling};
use crate::app::interrupted;
use crate::exit::Failure;
use crate::progress::Progress;
use dacapo_safenet::measure::Cast;
use dacapo_sys::signal::{Signal, Signals};
use near::{Look, Near, Trouble};
pub use place::Carrier;
use place::{Network, Place};
use plain::Frames;
use std::time::Duration;

/// For errors.
const WHAT: &str = "bench safenet";
/// What is lost makes a point that was begun anew; so often at most.
const TRIES: u32 = 3;
/// So often each point is measured; what is in the middle counts.
const ROUNDS: u32 = 3;
/// Messages of these lengths go in one frame; its own head of ten bytes is not counted.
const FRAMES: [usize; 5] = [0, 64, 256, 1_000, plain::FRAME_LEN_MAX];

/// Which near end a row is measured with.
#[derive(Clone, Copy)]
enum End {
    Users,
    Streams,
    Datagrams,
    Frames(Frames),
}

/// A row that is to be measured.
struct Wanted {
    name: &'static str,
    end: End,
    level: Level,
    cast: Cast,
    then: Option<then::Then>,
}

impl Wanted {
    const fn frames(&self) -> Option<Frames> {
        match self.end {
            End::Frames(frames) => Some(frames),
            _ => None,
        }
    }

    /// Why it cannot be measured there, of what only some kernels have.
    fn lacks(&self, place: &Place) -> Option<String> {
        self.frames().and_then(|frames| frames.lacks(place))
    }
}

const fn wanted(
    name: &'static str,
    end: End,
    level: Level,
    cast: Cast,
    then: Option<then::Then>,
) -> Wanted {
    Wanted { name, end, level, cast, then }
}

const ONE: Cast = Cast::Unicast;
const ROWS: [Wanted; 5] = [
    wanted("user", End::Users, Level::User, ONE, Some(then::UNICAST)),
    wanted(
        "user, group of 1",
        End::Users,
        Level::User,
        Cast::Multicast { receivers: 1 },
        Some(then::GROUP_OF_ONE),
    ),
    wanted(
        "user, group of 2",
        End::Users,
        Level::User,
        Cast::Multicast { receivers: 2 },
        Some(then::GROUP_OF_TWO),
    ),
    wanted("XTP", End::Streams, Level::Transport, ONE, Some(then::TRANSPORT)),
    wanted("plain UDP", End::Datagrams, Level::Udp, ONE, None),
];
/// The level of frames, and what it is called where there is none.
const MAC: &str = "MAC (Ethernet)";
const MAC_ROWS: [Wanted; 2] =
    [mac("MAC (Ethernet), ring", Frames::Ring), mac("MAC (Ethernet), calls", Frames::Calls)];

const fn mac(name: &'static str, frames: Frames) -> Wanted {
    wanted(name, End::Frames(frames), Level::Mac, ONE, Some(then::NETWORK))
}

/// Measures every level over this network; what it lacks the right for is left out, with the
/// reason.
pub fn run(
    over: Carrier,
    without_check: bool,
    most: Duration,
    progress: &mut Progress,
) -> Result<Results, Failure> {
    // Before anything is made that must be gone in the end.
    let signals = Signals::catch(&Signal::ALL);
    let mut run =
        Run { signals: signals.map_err(|error| Failure::run_time(WHAT, error))?, most, progress };
    let failed = |text| Failure::run_time(WHAT, text);
    let cable = Place::cable();
    let place = match over {
        Carrier::Udp => Place::Loopback,
        Carrier::Ip | Carrier::Ethernet => cable.clone().map_err(failed)?,
    };
    let network = Network { place, over, without_check };
    let mut rows = Vec::new();
    for wanted in ROWS {
        rows.push(run.row(&network, wanted)?);
    }
    let mut left_out = Vec::new();
    match cable {
        Ok(place) => {
            let network = Network { place, over, without_check };
            for wanted in MAC_ROWS {
                match wanted.lacks(&network.place) {
                    Some(why) => left_out.push((wanted.name, why)),
                    None => rows.push(run.row(&network, wanted)?),
                }
            }
        }
        Err(why) => left_out.push((MAC, why)),
    }
    Ok(Results { network: over.name(), is_checked: !without_check, rows, left_out })
}

struct Run<'a> {
    signals: Signals,
    most: Duration,
    progress: &'a mut Progress,
}

impl Run<'_> {
    fn row(&mut self, network: &Network, wanted: Wanted) -> Result<Row, Failure> {
        let frames = wanted.frames().map(Frames::name);
        let Wanted { name, end, level, cast, then } = wanted;
        let lens: &[usize] = match end {
            End::Frames(_) => &FRAMES,
            // Streams of XTP have no empty messages.
            End::Streams => LENS.get(1..).unwrap_or_default(),
            End::Users | End::Datagrams => &LENS,
        };
        let mut points = Vec::new();
        for len in lens {
            if self.progress.is_due() {
                self.progress.show(&format!("{name}, {len} bytes"));
            }
            points.push(self.point(network, &wanted, *len)?);
        }
        Ok(Row { name, level, cast, place: network.place.words(), frames, then, points })
    }

    /// Measures a point several times, each time between other threads, and takes the middle: where
    /// the system puts two threads decides what it costs one to wake up the other.
    fn point(&mut self, network: &Network, wanted: &Wanted, len: usize) -> Result<Point, Failure> {
        let mut points = Vec::new();
        for _ in 0..ROUNDS {
            points.push(self.try_point(network, wanted, len)?);
        }
        let middle = |of: fn(&Point) -> f64| {
            let mut all: Vec<f64> = points.iter().map(of).collect();
            all.sort_by(f64::total_cmp);
            all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let (latency_us, mbit_s) = (middle(|point| point.latency_us), middle(|point| point.mbit_s));
        let arrived = middle(|point| point.arrived);
        Ok(Point { len, latency_us, mbit_s, arrived })
    }

    /// Measures a point; anew, when something was lost that is not sent again.
    fn try_point(
        &mut self,
        network: &Network,
        wanted: &Wanted,
        len: usize,
    ) -> Result<Point, Failure> {
        let most = self.most / ROUNDS;
        let failed =
            |text: String| Failure::run_time(WHAT, format!("{}, {len} bytes: {text}", wanted.name));
        let mut last = String::new();
        for _ in 0..TRIES {
            let mut near = near(network, wanted).map_err(failed)?;
            match measure(&mut near, len, most, &mut || self.signals.poll()) {
                Ok(point) => return Ok(point),
                Err(Trouble::Lost(text)) => last = text,
                Err(Trouble::Broken(text)) => return Err(failed(text)),
                Err(Trouble::Interrupted(signal)) => return Err(interrupted(signal)),
            }
        }
        Err(failed(last))
    }
}

fn near(network: &Network, wanted: &Wanted) -> Result<Near, String> {
    match wanted.end {
        End::Users => users::Users::near(network, wanted.cast),
        End::Streams => streams::Streams::near(network),
        End::Datagrams => plain::Plain::datagrams(&network.place),
        End::Frames(by) => plain::Plain::frames(&network.place, by),
    }
}

fn measure(
    near: &mut Near,
    len: usize,
    most: Duration,
    look: &mut Look<'_>,
) -> Result<Point, Trouble> {
    // The first opens what has to be opened.
    near.echo(len, 1, look)?;
    let each = near.echo(len, TRIED, look)?;
    let count = filling(most, each);
    let latency_us = near.echo(len, count, look)?.as_secs_f64() * 1e6 / 2.0;
    let (each, _) = near.one_way(len, TRIED, look)?;
    let count = filling(most, each);
    let (each, arrived) = near.one_way(len, count, look)?;
    let arrived = arrived as f64 / f64::from(count);
    let mbit_s = len as f64 * 8.0 / 1e6 / each.as_secs_f64().max(1e-9);
    Ok(Point { len, latency_us, mbit_s, arrived })
}
