//! What every transport with streams of its own is to do in a session, whichever it is.

use crate::world::{TWO_WAY, active_pair, unit, watched};

const UNITS: usize = 3_000;

/// The session of both ways, over another transport and without its bound.
pub(crate) fn over(transport: &str) -> String {
    let file = TWO_WAY.replace("\"udp\"", &format!("\"{transport}\""));
    file.replace("bound = \"200 Mbit/s\"\n", "")
}

/// A session both ways in which every unit is answered: all of them come, in order, as they were.
pub(crate) fn loses_nothing(file: String) {
    watched(move || {
        let (creator, participant) = active_pair(&file);
        let reader = std::thread::spawn(move || {
            for number in 0..UNITS {
                assert_eq!(
                    participant.receiver("there").unwrap().recv().unwrap(),
                    Some(unit(number)),
                    "{number}"
                );
                participant.sender("back").unwrap().send(&unit(number)).unwrap();
            }
            assert_eq!(participant.receiver("there").unwrap().recv().unwrap(), None);
            participant.sender("back").unwrap().finish().unwrap();
            participant.close().unwrap()
        });
        let writer = std::thread::spawn(move || {
            for number in 0..UNITS {
                creator.sender("there").unwrap().send(&unit(number)).unwrap();
                assert_eq!(
                    creator.receiver("back").unwrap().recv().unwrap(),
                    Some(unit(number)),
                    "{number}"
                );
            }
            creator.sender("there").unwrap().finish().unwrap();
            creator.close().unwrap()
        });
        for account in [writer.join().unwrap(), reader.join().unwrap()] {
            assert!(account.is_complete(), "{account}");
            for flow in &account.flows {
                assert_eq!(flow.ledger.delivered, UNITS as u64, "{account}");
                assert_eq!(flow.same_bytes, Some(true), "{flow}");
            }
        }
    });
}

/// As fast as the application writes: what is lost is said, and the sum closes.
pub(crate) fn accounts_for_all(file: String, transport: &'static str) {
    watched(move || {
        let (creator, participant) = active_pair(&file);
        assert_eq!(participant.flows()[0].transport, transport);
        let reader = std::thread::spawn(move || {
            let mut came = 0_u64;
            while participant.receiver("there").unwrap().recv().unwrap().is_some() {
                came += 1;
            }
            (came, participant.close().unwrap())
        });
        for number in 0..UNITS {
            creator.sender("there").unwrap().send(&unit(number)).unwrap();
        }
        creator.sender("there").unwrap().finish().unwrap();
        let (came, there) = reader.join().unwrap();
        let here = creator.close().unwrap();
        assert_eq!(here.flows[0].ledger, there.flows[0].ledger, "{here}\n{there}");
        let ledger = &here.flows[0].ledger;
        assert_eq!((ledger.sent, ledger.delivered), (UNITS as u64, came), "{here}");
        assert!(ledger.closes() && came > 0, "{here}");
    });
}
