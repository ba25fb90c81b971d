//! The gate: every kind of association, with every option, over a cable between two namespaces, as
//! UDP, IP protocol 36 and Ethernet. A tap writes down what the cable carried; tshark reads all of
//! it, and nothing that a flow is to show is missing.
//!
//! `cargo test --workspace --test gate` runs this one and the message service's. Without the right
//! to make a cable, or without tshark, it says so and proves nothing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "what fails here fails the test")]

#[path = "../common/mod.rs"]
mod common;
mod flows;
mod pair;
mod watched;

use common::cable::{Cable, Over};
use common::closes;
use dacapo_xtp::wire::{Format, Options};
use flows::FLOWS;
use pair::Pair;

#[test]
fn every_flow_over_every_network_is_read_by_tshark() {
    let Some(cable) = Cable::new() else { return };
    for over in Over::ALL {
        let mut tap = cable.tap();
        let mut pair = Pair::new(&cable, over);
        for flow in FLOWS {
            flow.run(&mut pair);
        }
        pair.hosts.iter().for_each(closes);
        for format in Format::ALL {
            // 4.0b has JCNTL in place of JOIN, and we send what 4.0b has.
            let is_to_be = format != Format::Join;
            assert_eq!(pair.seen.formats().contains(&format), is_to_be, "{over:?}: {format:?}");
        }
        for (option, name) in Options::ALL {
            assert!(pair.seen.options().has(option), "{over:?}: {name} was never sent");
        }
        tap.judge(over, pair.seen.count());
    }
}
