//! The playout clock as a hostile sender's medium headers drive it.

use crate::input::Input;
use crate::oracle;
use dacapo_base::Time;
use dacapo_media::playout::{Config, Playout, Speed, Verdict};
use dacapo_wire::media::{Header, LEN, is_newer};
use std::time::Duration;

/// Steps: a unit with its header, a gap, a command, time.
pub fn playout(data: &[u8]) {
    steps(Input(data));
}

fn steps(mut input: Input<'_>) {
    let (budget, ahead_max, byte) = (input.u8(), input.u16(), input.u8());
    let least = (byte >= 128).then(|| Duration::from_millis(u64::from(byte % 128)));
    let config = Config {
        budget: Duration::from_millis(u64::from(budget)),
        budget_min: least,
        ahead_max: Duration::from_millis(u64::from(ahead_max)),
        resync_count: u32::from(byte % 32),
        speed: Speed::from_permille(i32::from(input.u16().cast_signed())).unwrap_or(Speed::NORMAL),
    };
    let mut clock = Playout::new(config);
    let mut now = Time::from_millis(1);
    let mut newest: Option<u32> = None;
    while !input.is_empty() {
        match input.u8() % 8 {
            0..=3 => {
                let Ok(header) = Header::parse(input.take(LEN)) else { continue };
                oracle::bounded("a medium header", LEN, || {
                    arrive(&mut clock, &mut newest, now, &header);
                });
            }
            4 => {
                let count = input.number();
                oracle::bounded("a gap of a medium", 0, || clock.handle_gap(count));
            }
            5 => {
                let speed = Speed::from_permille(input.u32().cast_signed());
                let speed = speed.unwrap_or(Speed::NORMAL);
                oracle::bounded("a speed of a medium", 0, || clock.set_speed(now, speed));
            }
            6 => now += Duration::from_nanos(input.number()),
            _ => now += Duration::from_millis(u64::from(input.u8())),
        }
    }
    let stats = clock.stats();
    assert!(stats.repeated >= stats.late, "{stats:?}");
}

fn arrive(clock: &mut Playout, newest: &mut Option<u32>, now: Time, header: &Header) {
    // As the access part does it: generations that wrap are counted on.
    let is_old = newest.is_some_and(|newest| is_newer(newest, header.generation));
    let counted = if is_old { newest.unwrap_or(0).wrapping_sub(1) } else { header.generation };
    let index = u64::from(header.index);
    let verdict = clock.handle_arrival(now, counted, header.media_ns, index);
    if let Verdict::Show { at } = verdict {
        assert!(at >= now, "to be shown before it came: {at:?} at {now:?}");
        assert!(!is_old || clock.generation() == Some(counted), "an old unit is shown");
    }
    if clock.generation() == Some(counted) && !is_old {
        *newest = Some(counted);
    }
    let again = clock.handle_arrival(now, counted, header.media_ns, index);
    assert!(!matches!(again, Verdict::Show { .. }), "one unit is shown twice");
}

/// Media in time, a jump back, and numbers at their ends.
pub fn playout_seeds() -> Vec<Vec<u8>> {
    let unit = |generation: u32, index: u32, media_ms: u64| {
        let media_ns = media_ms * 1_000_000;
        let header = Header { generation, index, media_ns, ..Header::default() };
        [&[0], &header.emit()[..]].concat()
    };
    let start = vec![100, 0x27, 0x10, 25, 0x03, 0xE8];
    let played = [unit(1, 0, 0), vec![7, 40], unit(1, 1, 40), vec![7, 40], unit(1, 2, 80)].concat();
    let jumped = [unit(2, 90, 9_000), unit(1, 3, 120), vec![4, 5], unit(2, 91, 9_040)].concat();
    let ends = [unit(0xFF_FFFF, u32::MAX, u64::MAX / 1_000_000), vec![6, 0xFF], unit(0, 0, 0)];
    vec![
        [start.clone(), played.clone()].concat(),
        [start.clone(), played, jumped].concat(),
        [start, ends.concat(), vec![5, 0, 0, 0, 1]].concat(),
    ]
}
