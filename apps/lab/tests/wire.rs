//! The rows on real sockets hold in their short form, and what they rest on finds what is planted.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

use dacapo_lab::Scale;
use dacapo_lab::faults::by_id;
use serde_json::Value;

fn short(id: &str) -> Value {
    let seen = (by_id(id).unwrap().run)(&Scale::short());
    let seen = seen.unwrap_or_else(|reason| panic!("{id}: {reason}"));
    println!("{id}: {}", seen.figure);
    assert!(!seen.figure.contains('\n'));
    seen.json
}

#[test]
fn junk_alters_nothing_and_the_account_closes() {
    let json = short("junk");
    let sent = &json["rounds"][0]["flow"]["sent"];
    for kind in ["random", "label", "truncated", "initial"] {
        assert!(sent[kind].as_u64() > Some(0), "{kind}: {json}");
    }
}

#[test]
fn a_flood_leaves_nothing_and_who_is_honest_gets_in() {
    let json = short("flood");
    assert_eq!(json["honest_share"], 1.0, "{json}");
}

#[test]
fn sessions_that_come_and_go_leave_nothing() {
    assert_eq!(short("churn")["count"], 2_000);
}

#[test]
fn set_ups_that_fail_leave_nothing() {
    let json = short("churn-failed");
    assert!(json["vanished"].as_u64() > Some(0), "{json}");
}

#[test]
fn a_flow_of_datagrams_goes_on_when_its_path_does() {
    let cuts = short("contact-udp");
    let cuts = cuts["cuts"].as_array().unwrap();
    assert_eq!(cuts.len(), 3, "both ways and each alone");
    // What was sent before loss of contact was known is lost, so the cut was one.
    assert!(cuts[0]["lost"].as_u64() > Some(0), "{cuts:?}");
}

#[test]
fn a_flow_over_a_stream_goes_on_when_its_path_does_and_loses_nothing() {
    let json = short("contact-tcp");
    if let Some(reason) = json["skipped"].as_str() {
        return dacapo_base::skip(reason);
    }
    assert_eq!(json["cuts"][0]["lost"], 0, "{json}");
}

#[test]
fn a_client_is_told_that_its_server_was_started_anew() {
    short("contact-restart");
}

#[test]
fn processes_that_stand_still_for_a_while_go_on() {
    short("stop");
}
