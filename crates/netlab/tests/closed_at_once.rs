//! A connection whose first packet closes it is gone, and keeps no place.
//!
//! A dialer whose packets are lost gives its attempts up, and the first that arrives of them says
//! so: `quinn-proto` sets no timer for such a connection. Without care it stays for ever, and 4,096
//! of them, for which no address need be proved, end a listener.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms};
use dacapo_core::{Command, DialParams, Done};

#[test]
fn attempts_that_arrive_closed_leave_nothing() {
    let mut lab = Lab::new("delay=20ms");
    let (creator, participant) = (lab.creator, lab.participant);
    for round in 0..3 {
        lab.world.cut(participant, creator, true);
        let (now, address) = (lab.now(), lab.world.address(creator));
        let peer = lab
            .world
            .core(participant)
            .handle_command(
                now,
                Command::Connect { remote: address.into(), params: DialParams::default() },
            )
            .and_then(Done::peer)
            .unwrap();
        // Several attempts, none of which gets through.
        lab.run(ms(1_700));
        lab.world.cut(participant, creator, false);
        let now = lab.now();
        lab.world
            .core(participant)
            .handle_command(now, Command::Disconnect(peer))
            .map(drop)
            .unwrap();
        lab.run(ms(60_000));
        let left = [creator, participant].map(|node| lab.world.core(node).connection_count());
        assert_eq!(left, [0, 0], "round {round}");
    }
}
