//! The account part of a sender, in each of its states.

use crate::error::{Code, Error};
use crate::flow::FlowOut;
use crate::flow::FlowParams;
use crate::flow::sender::account::TxAccount;
use crate::flow::tests::{Bench, PARAMS, at, ms, told};
use dacapo_wire::message::Message;
use dacapo_wire::session::Report;

fn report(delivered: u64, lost: u64, hash: [u8; 32]) -> Report {
    Report { flow: 3, delivered, lost, hash, ..Report::default() }
}

/// One that was fed two units of 10 and 20 bytes.
fn fed(bench: &mut Bench) -> TxAccount {
    let mut account = TxAccount::new(&PARAMS);
    for (place, len) in [(0, 10), (1, 20)] {
        let packet = bench.unit(place, &vec![place as u8; len]);
        account.note_fed(&bench.pool, std::slice::from_ref(&packet), len);
        bench.pool.free(packet);
    }
    account
}

#[test]
fn end_says_once_what_was_fed_and_why_it_ended() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut account = fed(&mut bench);
    assert_eq!((account.units(), account.fed().bytes), (2, 30));
    assert!(!account.has_ended() && !account.awaits_report() && !account.is_reported());
    account.end(5, &mut out);
    let Some(Message::End(end)) = out.messages.first() else { panic!("{out:?}") };
    assert_eq!((end.flow, end.epoch, end.units, end.bytes, end.code), (3, 5, 2, 30, 0));
    assert_eq!(end.hash, account.fed().hash.unwrap().to_bytes());
    out.messages.clear();
    account.end(5, &mut out);
    assert!(told(&mut out).is_empty(), "once");
    assert!(account.has_ended() && account.awaits_report());

    let mut failed = fed(&mut bench);
    failed.fail(&Error::new(Code::AccessFailed, "first"), &mut out);
    failed.fail(&Error::new(Code::ContactLost, "second"), &mut out);
    failed.end(0, &mut out);
    let code = Code::AccessFailed as u16;
    assert_eq!(told(&mut out), [format!("END 2 30 {code}"), "failed: first".into()]);
}

#[test]
fn a_report_that_adds_up_is_taken_and_no_other() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut account = fed(&mut bench);
    account.end(0, &mut out);
    told(&mut out);
    assert!(account.check(&report(1, 0, [0; 32])).is_none());
    assert!(account.check(&report(3, 0, [0; 32])).is_none());
    let mut huge = report(u64::MAX, 3, [0; 32]);
    huge.dropped = vec![(0, u64::MAX), (250, 1)];
    assert!(account.check(&huge).is_none(), "it does not overflow either");
    let hash = account.fed().hash.unwrap().to_bytes();
    let report = report(2, 0, hash);
    let ledger = account.check(&report).expect("it adds up");
    account.settle(ledger, &report, &mut out);
    assert_eq!(told(&mut out), ["ended 2 of 2, hash Some(true)"]);
    assert!(account.is_reported() && account.has_ended() && !account.awaits_report());
    account.give_up(&mut out);
    assert!(told(&mut out).is_empty(), "it is accounted for");
}

#[test]
fn bytes_are_compared_only_where_all_units_came() {
    for (params, delivered, hash, expected) in [
        (PARAMS, 2, [9; 32], "ended 2 of 2, hash Some(false)"),
        (PARAMS, 1, [9; 32], "ended 1 of 2, hash None"),
        (FlowParams { digest: false, ..PARAMS }, 2, [0; 32], "ended 2 of 2, hash None"),
    ] {
        let mut out = FlowOut::default();
        let mut account = TxAccount::new(&params);
        assert_eq!(account.has_hash(), params.digest);
        account.note_sent(10);
        account.note_sent(20);
        let report = report(delivered, 2 - delivered, hash);
        let ledger = account.check(&report).unwrap();
        account.settle(ledger, &report, &mut out);
        assert_eq!(told(&mut out), [expected]);
    }
}

#[test]
fn who_gives_up_books_what_nobody_can_say_as_unknown() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut account = fed(&mut bench);
    account.give_up(&mut out);
    let ledger = match out.events.first() {
        Some(crate::flow::FlowEvent::Ended { ledger, hash: None, failure: None }) => ledger.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((ledger.sent, ledger.unknown, ledger.closes()), (2, 2, true));
    account.give_up(&mut out);
    assert_eq!(told(&mut out).len(), 1, "once");
    assert!(account.is_reported());
}

#[test]
fn what_was_fed_may_go_out_for_five_seconds_after_the_close() {
    let mut account = TxAccount::new(&PARAMS);
    assert_eq!((account.due(), account.is_overdue(at(1 << 40))), (None, false));
    account.close(at(1_000));
    account.close(at(3_000));
    assert_eq!(account.due(), Some(at(6_000)), "from the first close on");
    account.shift(ms(500));
    assert!(!account.is_overdue(at(6_499)) && account.is_overdue(at(6_500)));
    account.end(0, &mut FlowOut::default());
    assert_eq!(account.due(), None, "END was said");
}
