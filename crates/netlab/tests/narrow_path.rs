//! A path that carries short datagrams only is as good as any: contact stays.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms, plain};
use dacapo_core::CoreEvent;

#[test]
fn contact_stays_on_a_path_without_full_datagrams() {
    for link in ["delay=20ms,mtu=1280", "delay=20ms,mtu=1451", "delay=300ms,mtu=1280"] {
        let mut lab = Lab::new(link);
        lab.pattern.count = 20_000;
        let joined = lab.start(plain());
        lab.run(ms(10_000));
        for node in [lab.creator, lab.participant] {
            let lost = |event: &CoreEvent| matches!(event, CoreEvent::ContactLost { .. });
            assert_eq!(lab.count(node, lost), 0, "over {link}, at {node:?}");
        }
        assert!(joined.numbers(0).len() > 9_000, "over {link}: {}", joined.numbers(0).len());
    }
}
