//! The configuration of an emulated link, as it stands on a command line or in a URL, and traces in
//! files.

use crate::oracle;
use dacapo_base::{Random, Time};
use dacapo_link::{Link, LinkConfig, Trace, TraceSource};
use std::time::Duration;

/// A configuration.
pub fn config(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = oracle::bounded("a link", text.len(), || text.parse::<LinkConfig>());
    match read {
        Ok(config) => {
            assert!(config.validate().is_ok(), "{text:?} is read to a link that is none");
            let printed = config.to_string();
            assert_eq!(printed.parse::<LinkConfig>(), Ok(config.clone()), "as {printed:?}");
            carry(config);
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
    }
}

/// A link that is valid carries, or says what became of what it does not.
fn carry(config: LinkConfig) {
    let link = Link::new(config, random());
    let mut link = link.expect("what was read is valid");
    let mut now = Time::from_millis(1);
    for len in [0, 1, 100, 1_500, 9_000] {
        let _ = link.handle_send(now, vec![0xA5_u8; len]);
        now += Duration::from_micros(10);
    }
    for _ in 0..32 {
        let Some(at) = link.next_deadline() else { break };
        now = now.max(at);
        while link.poll_deliver(now).is_some() {}
    }
}

/// One of everything.
pub fn config_seeds() -> Vec<Vec<u8>> {
    let texts = [
        "perfect",
        "",
        "loss=5%,burst=10,delay=20ms,rate=10Mbit/s",
        "delay=20ms,jitter=5ms,shape=normal,keep-order=no",
        "gilbert=1%:30%:0%:50%",
        "dup=1%,reorder=2%,reorder-by=5ms,corrupt=0.1%,corrupt-undetected=0.01",
        "rate=500kbit/s,queue=100,queue-bytes=64KiB,in-flight=7",
        "partition=5s..7s+20s..never,mtu=1280,mtu-from=5s",
        "delay=never",
        "loss=5%,loss=6%",
        "rate=10Mbit/s,aqm=codel,aqm-target=5ms,aqm-interval=100ms,ecn=clear",
        "trace=cellular:7,aqm=dualpi2,aqm-target=15ms",
        "trace=a.trace,ecn=keep",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// A trace.
pub fn trace(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match oracle::bounded("a trace", text.len(), || Trace::parse(&text)) {
        Ok(trace) => {
            assert!(trace.at_ms().is_sorted() && !trace.duration().is_zero(), "{text:?}");
            assert_eq!(Trace::parse(&trace.to_string()).as_ref(), Ok(&trace), "{text:?}");
            let last = Time::ZERO + trace.duration() * 8;
            let trace = Some(TraceSource::given("fuzz", trace));
            let link = Link::new(LinkConfig { trace, ..LinkConfig::default() }, random());
            let mut link = link.expect("what was read is valid");
            // One opportunity in each pass is enough for these.
            for len in [0, 1, 100, 1_500, 9_000] {
                let _ = link.handle_send(Time::ZERO, vec![0xA5_u8; len]);
            }
            let arrived = std::iter::from_fn(|| link.poll_deliver(last)).count();
            assert_eq!(arrived, 5, "{text:?}");
        }
        Err(error) => assert!(!error.to_string().chars().any(char::is_control), "{error}"),
    }
}

fn random() -> Random {
    Random::from_number(1)
}

/// One of everything, and one of each mistake.
pub fn trace_seeds() -> Vec<Vec<u8>> {
    let texts = ["0\n1\n1\n4\n", "1", "5\r\n86400000\r\n", "0\n", "7\n6\n", "1\n\n2\n", ""];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
