//! Flows over XTP: all of them, in order, or some of them, at their bound.

use crate::quic::over;
use crate::world::{TWO_WAY, active_pair, unit, watched};

const UNITS: usize = 3_000;

#[test]
fn a_flow_over_xtp_loses_nothing_and_keeps_the_order() {
    watched(|| {
        let (creator, participant) = active_pair(&over("xtp"));
        let reader = std::thread::spawn(move || {
            for number in 0..UNITS {
                assert_eq!(participant.recv("there").unwrap(), Some(unit(number)), "{number}");
                participant.send("back", &unit(number)).unwrap();
            }
            assert_eq!(participant.recv("there").unwrap(), None);
            participant.finish("back").unwrap();
            participant.close().unwrap()
        });
        let writer = std::thread::spawn(move || {
            for number in 0..UNITS {
                creator.send("there", &unit(number)).unwrap();
                assert_eq!(creator.recv("back").unwrap(), Some(unit(number)), "{number}");
            }
            creator.finish("there").unwrap();
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

/// With the bound of the file, and a check above: both reach XTP as options.
#[test]
fn a_flow_of_messages_of_xtp_accounts_for_every_unit() {
    watched(|| {
        let file = TWO_WAY.replace("\"udp\"", "\"xtp-datagram\"");
        let (creator, participant) = active_pair(&file);
        assert_eq!(participant.flows()[0].transport, "xtp-datagram");
        let reader = std::thread::spawn(move || {
            let mut came = 0_u64;
            while participant.recv("there").unwrap().is_some() {
                came += 1;
            }
            (came, participant.close().unwrap())
        });
        for number in 0..UNITS {
            creator.send("there", &unit(number)).unwrap();
        }
        creator.finish("there").unwrap();
        let (came, there) = reader.join().unwrap();
        let here = creator.close().unwrap();
        assert_eq!(here.flows[0].ledger, there.flows[0].ledger, "{here}\n{there}");
        let ledger = &here.flows[0].ledger;
        assert_eq!((ledger.sent, ledger.delivered), (UNITS as u64, came), "{here}");
        assert!(ledger.closes() && came > 0, "{here}");
    });
}

/// Over a path that loses TCP cannot keep the rate and a repair of UDP not the loss.
#[test]
fn a_bounded_flow_that_may_lose_nothing_takes_xtp_where_losses_slow_what_yields() {
    watched(|| {
        let file = "[session]\nname = \"steady\"\n\n[path]\nassume = \"internet\"\n\n[[flow]]\n\
                    name = \"data\"\nfrom = \"creator\"\nsource = { raw = true }\n\
                    bound = \"20 Mbit/s\"\nattributes = { throughput = { min = \"8 Mbit/s\" }, \
                    loss = { max = \"0 %\" } }\n";
        let (creator, participant) = active_pair(file);
        assert_eq!(participant.flows()[0].transport, "xtp");
        creator.send("data", b"all of it").unwrap();
        assert_eq!(participant.recv("data").unwrap().as_deref(), Some(&b"all of it"[..]));
        creator.close().unwrap();
    });
}
