//! `dacapo bench safenet`: messages over XTP at the levels of the SAFENET document, with the lines
//! through the latencies, beside its own.
//!
//! ```text
//!   over memory          memory.rs   users, XTP           ends in one process, no network
//!   over udp, ip,        over/       users, groups, XTP   ends in threads, a host each
//!        ethernet                    plain UDP, Ethernet  beside them, without XTP
//! ```

mod memory;
mod over;
mod row;
mod show;
mod then;

use crate::cli::{BenchSafenetArgs, MessagesOver, or_usage};
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use over::Carrier;
use std::time::Duration;

/// Lengths of messages, bytes; the first where there are empty ones.
const LENS: [usize; 7] = [0, 64, 256, 1_000, 4_000, 16_000, 65_536];
/// Round trips, or messages, with which it is found out how many fill the time.
const TRIED: u32 = 10;
/// The most of one point.
const COUNT_MAX: u32 = 1_000_000;

/// Runs the command.
pub fn run(args: &BenchSafenetArgs) -> Result<Exit, Failure> {
    or_usage(args.check().map_err(str::to_owned));
    let mut progress = Progress::new(args.json);
    let mut over = |carrier| over::run(carrier, args.no_check, args.seconds, &mut progress);
    let results = match args.over {
        MessagesOver::Memory => memory::run(args.seconds, &mut progress),
        MessagesOver::Udp => over(Carrier::Udp),
        MessagesOver::Ip => over(Carrier::Ip),
        MessagesOver::Ethernet => over(Carrier::Ethernet),
    };
    progress.clear();
    let results = results?;
    match args.json {
        true => output::json(&show::to_json(&results)),
        false => show::print(&results),
    }
    Ok(Exit::Success)
}

/// How many of them fill the time.
fn filling(most: Duration, each: Duration) -> u32 {
    let count = most.as_nanos() / each.as_nanos().max(1);
    u32::try_from(count).unwrap_or(COUNT_MAX).clamp(TRIED, COUNT_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_filled_and_never_for_ever() {
        let ms = Duration::from_millis;
        assert_eq!(filling(ms(100), ms(1)), 100);
        assert_eq!(filling(ms(1), ms(100)), TRIED);
        assert_eq!(filling(Duration::MAX, Duration::ZERO), COUNT_MAX);
    }
}
