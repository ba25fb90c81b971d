//! The account part of a receiver, in each of its states.

use super::end_of;
use crate::error::{Code, Error};
use crate::flow::FlowOut;
use crate::flow::FlowParams;
use crate::flow::chain::Chain;
use crate::flow::receiver::account::RxAccount;
use crate::flow::tests::{Bench, PARAMS, at, told};
use crate::ledger::UnitHash;
use crate::port::{Ending, Taken, UnitView};
use dacapo_lift::DropReason;
use dacapo_wire::session::End;

fn take(account: &mut RxAccount, bench: &mut Bench, number: u64, taken: Taken) {
    let mut chain = Chain::default();
    chain.push(bench.unit(number, &[number as u8; 10]));
    let unit = UnitView { pool: &bench.pool, chain: &chain, number, arrived: at(1) };
    account.hash(number, &unit, taken);
    account.note_taken(unit.len(), taken);
    chain.free(&mut bench.pool);
    account.note_seen(number + 1);
}

/// Two delivered, one late, one dropped, one lost.
fn five(bench: &mut Bench) -> RxAccount {
    let mut account = RxAccount::new(&PARAMS);
    for (number, taken) in [
        (0, Taken::Delivered),
        (1, Taken::Delivered),
        (2, Taken::Late),
        (3, Taken::Dropped(DropReason::Refused)),
    ] {
        take(&mut account, bench, number, taken);
    }
    account.note_lost(1);
    account.note_seen(5);
    account.note_duplicate();
    account.note_after_lost();
    account
}

#[test]
fn the_ledger_says_of_each_unit_what_became_of_it() {
    let mut bench = Bench::new();
    let account = five(&mut bench);
    let it = account.ledger();
    assert_eq!((it.sent, it.delivered, it.late, it.lost, it.bytes), (5, 2, 1, 1, 20));
    assert_eq!((it.dropped[DropReason::Refused.index()], it.duplicates, it.after_lost), (1, 1, 1));
    assert!(it.closes() && !account.is_finished() && !account.has_end() && account.id() == 3);
    let mut account = account;
    account.note_seen(2);
    assert_eq!(account.ledger().sent, 5, "less is no news");
}

#[test]
fn end_counts_once_and_who_hears_it_after_giving_up_answers_at_once() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut account = five(&mut bench);
    assert!(account.handle_end(end_of(7), &mut out));
    assert!(!account.handle_end(end_of(9), &mut out));
    assert_eq!((account.units_said(), account.has_end()), (Some(7), true));
    assert!(told(&mut out).is_empty());

    let mut late = five(&mut bench);
    late.give_up();
    late.finish(None, &mut out);
    assert!(late.ledger().sent_at_least);
    told(&mut out);
    assert!(!late.handle_end(end_of(7), &mut out));
    assert_eq!(told(&mut out), ["REPORT 2 1 1 2"], "what came after is unknown");
    assert!(!late.handle_end(end_of(7), &mut out));
    assert!(told(&mut out).is_empty(), "once");
}

#[test]
fn the_sum_for_the_sender_closes_whatever_it_says_there_was() {
    for (units, expected) in
        [(5, "REPORT 2 1 1 0"), (9, "REPORT 2 1 1 4"), (3, "REPORT 2 1 0 0"), (0, "REPORT 0 0 0 0")]
    {
        let (mut bench, mut out) = (Bench::new(), FlowOut::default());
        let mut account = five(&mut bench);
        account.handle_end(end_of(units), &mut out);
        account.answer(&mut out);
        assert_eq!(told(&mut out), [expected], "{units}");
    }
}

#[test]
fn what_was_never_sent_is_taken_off_at_the_end() {
    let (mut bench, mut out) = (Bench::new(), FlowOut::default());
    let mut account = five(&mut bench);
    account.handle_end(end_of(3), &mut out);
    account.settle();
    let it = account.ledger();
    assert!(it.closes() && it.sent == 3 && it.delivered == 1, "{it:?}");
}

#[test]
fn bytes_are_compared_where_all_units_came() {
    let mut hash = UnitHash::default();
    for number in [0, 1] {
        hash.add(number, 10, [&[number as u8; 10][..]].into_iter());
    }
    for (params, units, said, expected) in [
        (PARAMS, 2, hash.to_bytes(), "ended 2 of 2, hash Some(true)"),
        (PARAMS, 2, [7; 32], "ended 2 of 2, hash Some(false)"),
        (PARAMS, 3, hash.to_bytes(), "ended 2 of 3, hash None"),
        (FlowParams { digest: false, ..PARAMS }, 2, [0; 32], "ended 2 of 2, hash None"),
    ] {
        let (mut bench, mut out) = (Bench::new(), FlowOut::default());
        let mut account = RxAccount::new(&params);
        (0..2).for_each(|number| take(&mut account, &mut bench, number, Taken::Delivered));
        account.note_lost(units - 2);
        account.handle_end(End { hash: said, ..end_of(units) }, &mut out);
        account.settle();
        account.finish(None, &mut out);
        assert!(account.is_finished());
        assert_eq!(told(&mut out), [expected]);
    }
}

#[test]
fn one_cause_is_told_once_and_decides_how_the_flow_ends() {
    let mut out = FlowOut::default();
    let lost = Error::new(Code::ContactLost, "gone");
    let mut account = RxAccount::new(&PARAMS);
    account.note_failed(&lost, &mut out);
    assert_eq!(told(&mut out), ["failed: gone"]);
    assert_eq!(account.ending(None), Ending::Complete);
    assert_eq!(account.ending(Some(&lost)), Ending::Abnormal(lost.to_string()));
    let failed = |code: Code| End { code: code as u16, text: "no disk".into(), ..end_of(0) };
    account.handle_end(failed(Code::AccessFailed), &mut out);
    let source = Error::new(Code::AccessFailed, "no disk");
    assert_eq!(account.ending(Some(&lost)), Ending::SourceFailed(source.to_string()));
    account.answer(&mut out);
    assert_eq!(told(&mut out), ["REPORT 0 0 0 0"], "the application knows");

    let mut account = RxAccount::new(&PARAMS);
    account.handle_end(failed(Code::ContactLost), &mut out);
    account.note_failed(&lost, &mut out);
    assert!(told(&mut out).is_empty(), "the sender has said why");
    assert!(matches!(account.ending(None), Ending::Abnormal(_)));
    account.answer(&mut out);
    assert_eq!(told(&mut out), ["REPORT 0 0 0 0", "failed: no disk"]);
}
