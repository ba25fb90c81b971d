//! Flows over XTP: all of them, in order, or some of them, at their bound.

use crate::any_stream::{accounts_for_all, loses_nothing, over};
use crate::world::{TWO_WAY, active_pair, watched};

#[test]
fn a_flow_over_xtp_loses_nothing_and_keeps_the_order() {
    loses_nothing(over("xtp"));
}

/// With the bound of the file, and a check above: both reach XTP as options.
#[test]
fn a_flow_of_messages_of_xtp_accounts_for_every_unit() {
    let file = TWO_WAY.replace("\"udp\"", "\"xtp-datagram\"");
    accounts_for_all(file, "xtp-datagram");
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
        creator.sender("data").unwrap().send(b"all of it").unwrap();
        assert_eq!(
            participant.receiver("data").unwrap().recv().unwrap().as_deref(),
            Some(&b"all of it"[..])
        );
        creator.close().unwrap();
    });
}
