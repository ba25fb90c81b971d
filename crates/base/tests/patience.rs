//! Patience, on a clock of its own.

use dacapo_base::Tolerance;
use dacapo_base::patience::until;
use std::cell::Cell;
use std::time::{Duration, Instant};

#[test]
fn time_in_which_nobody_looked_counts_for_one_step() {
    let ms = Duration::from_millis;
    let mut now = Instant::now();
    let mut patience = Tolerance::new(now, ms(3_000));
    now += ms(600_000);
    assert!(patience.lasts(now), "stopped for ten minutes: 1 s");
    for _ in 0..399 {
        now += ms(5);
        assert!(patience.lasts(now));
    }
    assert!(patience.lasts(now), "no time has passed");
    now += ms(5);
    assert!(!patience.lasts(now));
    assert!(!patience.lasts(now - ms(70_000)), "nor does it come back");
}

#[test]
fn what_is_asked_is_asked_once_more_after_a_stop_and_then_no_longer_than_it_was_said() {
    let (start, at) = (Instant::now(), Cell::new(Duration::ZERO));
    let clock = || start + at.get();
    let mut asked = 0;
    let found = until(clock, Duration::from_secs(10), || {
        asked += 1;
        at.set(at.get() + Duration::from_secs(180));
        (asked == 9).then_some(asked)
    });
    assert_eq!(found, Some(9));
    let never = until(clock, Duration::from_secs(10), || {
        asked += 1;
        at.set(at.get() + Duration::from_millis(500));
        None::<()>
    });
    assert_eq!((never, asked), (None, 9 + 20));
}
