//! Two sessions over one control connection at the same time, each with streams of its own.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, code, ms, offer, offer_tcp, pattern};

const LINK: &str = "loss=2%,delay=20ms,jitter=2ms";

#[test]
fn two_sessions_run_side_by_side_and_the_end_of_one_leaves_the_other() {
    let mut lab = Lab::new(LINK);
    lab.pattern = pattern(2_000);
    let flows = || vec![offer_tcp("a", &["segment"]), offer("b", &["sequence"])];
    lab.publish("one", flows());
    lab.publish("two", flows());
    let peer = lab.dial();
    let one = lab.set_up(peer, "one");
    let two = lab.set_up(peer, "two");
    lab.activate(one.here);
    lab.activate(two.here);
    assert_eq!(lab.world.stream_count(), 2);
    assert_eq!(lab.world.core(lab.participant).connection_count(), 1);
    lab.run(ms(500));
    lab.close(lab.participant, one.here);
    assert_eq!(code(&lab.end_of(lab.participant, one.here, ms(2_000))), None);
    let (here, there) = lab.ledgers(&one, 0, ms(0));
    assert_eq!((here.delivered, here.lost, there.lost), (here.sent, 0, 0), "{here:?}");
    assert!(here.sent > 300, "{here:?}");
    lab.run(ms(200));
    assert_eq!(lab.world.stream_count(), 1, "the stream of the other");
    let (here, _) = lab.ledgers(&two, 0, ms(5_000));
    assert_eq!((here.delivered, here.lost), (2_000, 0));
    assert_eq!(two.numbers(0), (0..2_000).collect::<Vec<_>>());
    assert_eq!(lab.ended(lab.participant, two.here), None);
    lab.ledgers(&two, 1, ms(5_000));
    lab.close(lab.creator, two.there);
    assert_eq!(code(&lab.end_of(lab.participant, two.here, ms(2_000))), None);
    lab.check_empty();
}
