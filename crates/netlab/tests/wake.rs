//! A source that is fed from outside: it has nothing until the application hands something over and
//! says so.

// Functions that tests share are not tests to clippy.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Lab, ms, offer};
use dacapo_base::Time;
use dacapo_core::{Port, Source, SourcePoll, UnitWriter};
use dacapo_netlab::traffic::unit_bytes;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Handed {
    ready: u64,
    given: u64,
    asked: u64,
}

struct Fed(Arc<Mutex<Handed>>, dacapo_netlab::traffic::Pattern);

impl Source for Fed {
    fn poll_unit(&mut self, now: Time, unit: &mut UnitWriter<'_>) -> SourcePoll {
        let mut handed = self.0.lock().unwrap();
        handed.asked += 1;
        if handed.given == handed.ready {
            return SourcePoll::Idle;
        }
        let bytes = unit_bytes(&self.1, handed.given, now);
        unit.begin(bytes.len()).unwrap();
        unit.write(&bytes);
        handed.given += 1;
        SourcePoll::Unit
    }
}

#[test]
fn an_idle_source_is_asked_again_when_it_is_woken_and_not_before() {
    let mut lab = Lab::new("delay=20ms");
    let handed = Arc::new(Mutex::new(Handed::default()));
    let (kept, pattern) = (handed.clone(), lab.pattern);
    lab.publish_with("test", vec![offer("fed", &["sequence"])], move |_| {
        Ok(Port::Source(Box::new(Fed(kept.clone(), pattern))))
    });
    let peer = lab.dial();
    let joined = lab.set_up(peer, "test");
    let wake = |lab: &mut Lab, flow| {
        let now = lab.now();
        lab.world.core(lab.creator).wake(now, joined.there, flow);
    };
    handed.lock().unwrap().ready = 1;
    wake(&mut lab, 0);
    lab.run(ms(100));
    assert_eq!(joined.numbers(0).len(), 0, "it does not run yet");
    lab.activate(joined.here);
    lab.run(ms(100));
    assert_eq!(joined.numbers(0), [0]);
    handed.lock().unwrap().ready = 5;
    let asked = handed.lock().unwrap().asked;
    lab.run(ms(1_000));
    assert_eq!((joined.numbers(0).len(), handed.lock().unwrap().asked), (1, asked));
    wake(&mut lab, 0);
    lab.run(ms(25));
    assert_eq!(joined.numbers(0), [0, 1, 2, 3, 4]);
    // Nothing there, no such flow, no such end: nothing happens.
    wake(&mut lab, 0);
    wake(&mut lab, 7);
    let now = lab.now();
    lab.world.core(lab.participant).wake(now, joined.here, 0);
    lab.run(ms(100));
    assert_eq!(joined.numbers(0).len(), 5);
}
