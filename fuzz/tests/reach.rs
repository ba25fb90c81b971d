//! How far the corpora come: a target that never gets past the door finds nothing behind it.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_fuzz::targets::{
    agreement, commands, core_dialer, core_listener, events, messages, safenet, xtp, xtp_label,
};
use dacapo_fuzz::{corpus, find};
use std::collections::BTreeSet;

/// The kinds of reports that the inputs of a corpus lead to.
fn reached(name: &str, play: fn(&[u8]) -> BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    let files = corpus::read(find(name).unwrap()).unwrap();
    files.iter().flat_map(|(_, input)| play(input)).collect()
}

#[test]
fn the_participant_comes_through_set_up_data_change_and_end() {
    let reached = reached("core_listener", core_listener::play);
    let kinds = ["ready", "active", "inactive", "changed", "flow ended", "flow failed", "closed"];
    for kind in kinds {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn the_creator_comes_through_offer_accept_data_and_end() {
    let reached = reached("core_dialer", core_dialer::play);
    let kinds = ["peer open", "offered", "ready", "active", "flow failed", "peer lost", "closed"];
    for kind in kinds {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn commands_come_through_set_up_change_and_end() {
    let reached = reached("commands", commands::play);
    let kinds = [
        "done",
        "refused",
        "peer open",
        "offered",
        "ready",
        "active",
        "changed",
        "answered",
        "flow ended",
        "session ended",
    ];
    for kind in kinds {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn reports_that_lie_come_in_the_middle_of_sessions() {
    let reached = reached("events", events::play);
    let of_streams = ["open", "ready", "closed"].map(|kind| format!("said to be {kind}"));
    let of_network = ["refused", "too large", "found", "joined", "lost"];
    let of_network = of_network.map(|kind| format!("said to be {kind}"));
    let others = ["said to fall back", "said to have measured", "active", "flow ended"];
    let kinds = of_streams.into_iter().chain(of_network).chain(others.map(str::to_owned));
    for kind in kinds {
        assert!(reached.contains(kind.as_str()), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn proposals_are_admitted_and_refused_from_both_ends() {
    let reached = reached("agreement", agreement::play);
    for kind in ["change", "changed", "refused", "ready", "cannot", "given up"] {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn associations_of_xtp_come_through_every_packet_and_end() {
    let reached = reached("xtp_engine", xtp::play);
    let kinds = [
        "FIRST",
        "DATA",
        "CNTL",
        "ECNTL",
        "TCNTL",
        "JCNTL",
        "DIAG",
        "incoming",
        "opened",
        "joined",
        "left",
        "readable",
        "remark",
        "complete",
        "aborted",
        "timed out",
    ];
    for kind in kinds {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn streams_behind_a_label_of_xtp_open_and_end() {
    let reached = reached("xtp_label", xtp_label::play);
    for kind in ["unlabelled", "answered", "opened", "received", "sent", "closed"] {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn messages_come_through_and_end_in_every_way() {
    let reached = reached("safenet_service", safenet::play);
    let kinds = [
        "to a host",
        "to a group",
        "part",
        "broken",
        "malformed",
        "rested",
        "delivered",
        "sent",
        "reached",
        "failed",
        "failed: let go",
        "failed: rested",
        "unknown",
        "unknown: malformed",
        "not accepted",
        "room",
    ];
    for kind in kinds {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}

#[test]
fn messages_over_flows_come_whole_in_parts_and_broken() {
    let reached = reached("dacapo_messages", messages::play);
    let kinds = ["whole", "part", "broken", "malformed", "duplicate", "missed", "full"];
    for kind in kinds {
        assert!(reached.contains(kind), "no script leads to {kind:?}: {reached:?}");
    }
}
