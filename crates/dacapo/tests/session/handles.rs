//! Handles of flows: units are lent and copied without a lock, and what does not fit stays.

use crate::world::{TWO_WAY, active_pair, unit, watched};
use dacapo::{Code, Deadline, FlowReceiver, FlowSender, Received};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// What a closure does that takes its time.
const LONG: Duration = Duration::from_secs(5);

#[test]
fn a_unit_that_is_longer_than_the_buffer_stays_and_its_length_is_said() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let (mut there, mut here) =
            (creator.sender("there").unwrap(), participant.receiver("there").unwrap());
        there.send(&unit(9)).unwrap();
        there.send(b"").unwrap();
        let len = unit(9).len();
        let mut short = vec![7; len - 1];
        for _ in 0..3 {
            let error = here.recv_into(&mut short).unwrap_err();
            assert_eq!(error.code, Code::BufferTooShort);
            let text =
                format!("the next unit is {len} bytes long, and there is room for {}", len - 1);
            assert_eq!(error.text, text);
            assert!(short.iter().all(|&byte| byte == 7), "nothing of it was written");
            assert_eq!(here.next_len(), Some(len));
        }
        let mut long = vec![7; len + 1];
        assert_eq!(here.recv_into(&mut long).unwrap(), Some(len));
        assert_eq!((&long[..len], long[len]), (&unit(9)[..], 7));
        assert_eq!(here.recv_into(&mut []).unwrap(), Some(0), "an empty unit fits anywhere");
        there.finish().unwrap();
        assert_eq!(here.recv_into(&mut []).unwrap(), None);
        assert_eq!((here.next_len(), here.recv_with(|_| ()).unwrap()), (None, None));
    });
}

#[test]
fn who_looks_at_a_unit_for_long_holds_up_no_other_call() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let mut there = creator.sender("there").unwrap();
        let mut here = participant.receiver("there").unwrap();
        there.send(b"slowly").unwrap();
        there.send(b"meanwhile").unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let mut slow = here.clone();
        let looker = std::thread::spawn(move || {
            slow.recv_with(|unit| {
                tell.send(()).unwrap();
                std::thread::sleep(LONG);
                unit.to_vec()
            })
        });
        told.recv().unwrap();
        let began = Instant::now();
        assert_eq!(here.recv().unwrap().unwrap(), b"meanwhile", "the same flow goes on");
        let (mut back, mut got) =
            (participant.sender("back").unwrap(), creator.receiver("back").unwrap());
        for number in 0..1_000 {
            back.send(&unit(number)).unwrap();
            assert_eq!(got.recv().unwrap(), Some(unit(number)));
        }
        assert!(began.elapsed() < LONG, "the others waited for the closure");
        assert_eq!(looker.join().unwrap().unwrap().unwrap(), b"slowly");
    });
}

#[test]
fn a_closure_that_panics_takes_its_unit_and_nothing_else() {
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let mut there = creator.sender("there").unwrap();
        let mut here = participant.receiver("there").unwrap();
        there.send(b"one").unwrap();
        there.send(b"two").unwrap();
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            here.recv_with(|unit| assert_eq!(&*unit, b"none", "a closure that panics"))
        }));
        assert!(panicked.is_err());
        assert_eq!(here.recv().unwrap().unwrap(), b"two");
        participant.sender("back").unwrap().send(b"well").unwrap();
        assert_eq!(creator.receiver("back").unwrap().recv().unwrap().unwrap(), b"well");
        there.finish().unwrap();
        let account = creator.close().unwrap();
        assert!(account.flow("there").unwrap().is_complete(), "{account}");
    });
}

#[test]
fn handles_go_to_other_threads_and_keep_their_session() {
    fn is_handle<T: Clone + Send + Sync>(_: &T) {}
    watched(|| {
        let (creator, participant) = active_pair(TWO_WAY);
        let (there, here): (FlowSender, FlowReceiver) =
            (creator.sender("there").unwrap(), participant.receiver("there").unwrap());
        is_handle(&there);
        is_handle(&here);
        drop((creator, participant));
        let threads = (0..4).map(|_| {
            let mut there = there.clone();
            std::thread::spawn(move || (0..100).for_each(|it| there.send(&unit(it)).unwrap()))
        });
        let (threads, mut here) = (threads.collect::<Vec<_>>(), here);
        for _ in 0..400 {
            assert!(here.recv().unwrap().is_some());
        }
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(here.recv_by(Deadline::PAST).unwrap(), Received::Nothing);
        assert_eq!(here.try_recv().unwrap(), Received::Nothing);
        // The last handles close it.
        drop(there);
        assert!(here.recv().is_err() || here.recv().unwrap().is_none());
    });
}
