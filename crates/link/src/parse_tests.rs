//! Behaviour of configuration text, both ways.

use super::*;
use crate::config::{MtuPolicy, QueueLimit};
use dacapo_base::Random;

fn parse(text: &str) -> LinkConfig {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str) -> String {
    text.parse::<LinkConfig>().expect_err(text).to_string()
}

#[test]
fn every_key_sets_its_figure() {
    let config = parse(
        "loss=5%,delay=20ms,jitter=5ms,burst=10,dup=1%,reorder=2%,corrupt=0.1%,rate=10Mbit/s,\
         queue=100,mtu=1280,corrupt-undetected=0.1%,shape=normal,keep-order=no,reorder-by=30ms,\
         queue-bytes=64KiB,partition=5s..7s+20s..never,mtu-from=5s,in-flight=1000,aqm=codel,\
         aqm-target=7ms,aqm-interval=70ms,ecn=clear",
    );
    let expected = LinkConfig {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(5),
        jitter_shape: JitterShape::Normal,
        keep_order: false,
        loss: Loss::burst(0.05, 10.0).unwrap(),
        duplicate: 0.01,
        reorder: 0.02,
        reorder_by: Duration::from_millis(30),
        corrupt: 0.001,
        corrupt_undetected: 0.001,
        rate_bits_per_s: Some(10_000_000),
        trace: None,
        queue: QueueLimit { packets: 100, bytes: 65_536 },
        aqm: Some(Aqm::CoDel {
            target: Duration::from_millis(7),
            interval: Duration::from_millis(70),
        }),
        ecn_clear: true,
        partitions: vec![
            Window { from: Time::from_millis(5_000), to: Time::from_millis(7_000) },
            Window { from: Time::from_millis(20_000), to: Time::NEVER },
        ],
        mtu: Some(Mtu {
            len_max: 1_280,
            from: Time::from_millis(5_000),
            policy: MtuPolicy::BlackHole,
        }),
        in_flight_max: 1_000,
    };
    assert_eq!(config, expected);
    assert_eq!(parse(&config.to_string()), config);
}

#[test]
fn every_key_of_the_list_is_understood() {
    for key in KEYS {
        // Anything may be the name of a file.
        let text = if key == "trace" { "cellular:?" } else { "?" };
        let wants = Draft::default().set(key, text).expect_err(key);
        assert_ne!(wants, "a key with a meaning", "{key}");
    }
}

#[test]
fn the_perfect_link_has_a_name() {
    assert_eq!(LinkConfig::default().to_string(), "perfect");
    assert_eq!(parse("perfect"), LinkConfig::default());
    assert_eq!(parse(" "), LinkConfig::default());
}

#[test]
fn blanks_and_fractions_are_read() {
    let config = parse(" delay = 1.5 ms , rate = 2.048 Mbit/s,loss=0.25 , jitter=.5us ");
    assert_eq!(config.delay, Duration::from_micros(1_500));
    assert_eq!(config.rate_bits_per_s, Some(2_048_000));
    assert_eq!(config.loss, Loss::Random { p: 0.25 });
    assert_eq!(config.jitter, Duration::from_nanos(500));
}

#[test]
fn the_text_is_short_for_round_figures() {
    for text in [
        "delay=20ms,jitter=5ms,loss=5%,burst=10,dup=1%",
        "loss=0.1%,rate=10Mbit/s,queue=25,queue-bytes=64kB",
        "loss=33.3%,burst=3,corrupt-undetected=0.0001%",
        "loss=5%,burst=26ms",
        "delay=1500us,gilbert=0.5%:10%:1%:80%,mtu=1280,mtu-from=5s",
        "reorder=25%,reorder-by=30ms,partition=500ms..5s+60s..never",
        "rate=10Mbit/s,aqm=codel,ecn=clear",
        "rate=10Mbit/s,aqm=codel,aqm-target=10ms,aqm-interval=200ms",
        "trace=cellular:18446744073709551615,aqm=dualpi2,aqm-target=5ms",
    ] {
        assert_eq!(parse(text).to_string(), text);
    }
}

#[test]
fn an_unknown_key_names_the_nearest() {
    for (given, nearest) in [
        ("lose", "loss"),
        ("dealy", "delay"),
        ("duplicate", "dup"),
        ("Rate", "rate"),
        ("corupt", "corrupt"),
        ("undetected", "corrupt-undetected"),
        ("jiter", "jitter"),
        ("queuebytes", "queue"),
        ("max-in-flight", "in-flight"),
    ] {
        let message = refused(&format!("{given}=1"));
        assert!(message.contains(&format!("did you mean `{nearest}`?")), "{message}");
    }
}

#[test]
fn errors_say_what_is_wanted() {
    for (text, part) in [
        ("delay", "`delay` has no value"),
        ("delay=20ms,", "`` has no value"),
        ("delay=20", "delay=20 is not a time such as 20ms"),
        ("delay=20 parsecs", "is not a time"),
        ("delay=-1ms", "is not a time"),
        ("delay=0.0000000001s", "is not a time"),
        ("delay=1.2.3s", "is not a time"),
        ("delay=.s", "is not a time"),
        ("delay=99999999999999999999s", "is not a time"),
        ("delay=61s", "delay is 61s; choose at most 60s"),
        ("delay=1s,delay=2s", "delay is given twice"),
        ("loss=five", "is not a probability such as 5%"),
        ("loss=NaN", "is not a probability"),
        ("loss=101%", "loss is 1.01; a probability lies in 0 to 1"),
        ("loss=%", "is not a probability"),
        ("loss=1e0%", "is not a probability"),
        ("loss=-1%", "a probability lies in 0 to 1"),
        ("burst=3", "burst needs loss"),
        ("loss=90%,burst=2", "no bursts of mean length 2 lose 90%"),
        ("loss=100%,burst=2ms", "no bursts of 2ms on average lose 100%; choose burst 10us"),
        ("loss=5%,burst=2h", "a number of items such as 10, or a time such as 26ms"),
        ("loss=1%,gilbert=1%:1%:0%:1%", "gilbert stands alone"),
        ("gilbert=1%:1%:0%", "such as 0.5%:10%:0%:100%"),
        ("gilbert=1%:1%:0%:1%:1%", "such as 0.5%:10%:0%:100%"),
        ("rate=10MB/s", "is not a rate in bits such as 10Mbit/s"),
        ("rate=0bit/s", "rate is 0; choose 1 to"),
        ("queue=-1", "is not a count"),
        ("mtu=0", "mtu is 0; choose at least 1"),
        ("mtu-from=5s", "mtu-from needs mtu"),
        ("partition=5s", "is not windows such as"),
        ("partition=7s..5s", "ends before it begins"),
        ("reorder=1%,reorder-by=0s", "reorder needs reorder-by above zero"),
        ("shape=pareto", "is not uniform or normal"),
        ("keep-order=maybe", "is not yes or no"),
        ("aqm=codel", "aqm needs rate or trace beside it"),
        ("rate=1Mbit/s,aqm=red", "aqm=red is not codel or dualpi2"),
        ("rate=1Mbit/s,aqm-target=5ms", "aqm-target needs aqm beside it"),
        ("rate=1Mbit/s,aqm-interval=5ms", "aqm-interval needs aqm=codel beside it"),
        ("rate=1Mbit/s,aqm=dualpi2,aqm-interval=5ms", "aqm-interval is one of codel; leave it out"),
        ("rate=1Mbit/s,aqm=codel,aqm-target=0ms", "aqm-target is 0ns; choose 1µs to 60s"),
        ("rate=1Mbit/s,aqm=codel,aqm-interval=61s", "aqm-interval is 61s; choose"),
        ("rate=1Mbit/s,trace=cellular:1", "leave one of them out"),
        ("trace=", "trace= is not a file, or cellular:SEED"),
        ("trace=cellular:-1", "cellular:-1 is not a file, or cellular:SEED"),
        ("trace=cell.trace", "trace=cell.trace: no files are read here; choose cellular:SEED"),
        ("ecn=ce", "ecn=ce is not keep or clear"),
    ] {
        let message = refused(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn long_and_strange_text_is_repeated_only_in_part() {
    let message = refused(&format!("{}=\u{7}", "é\n".repeat(5_000)));
    assert!(message.len() < 700 && !message.contains('\n'), "{message}");
    assert!(refused(&"x".repeat(TEXT_LEN_MAX + 1)).contains("bytes; at most"));
    let many = vec!["1s..2s"; 2_000].join("+");
    assert!(refused(&format!("partition={many}")).contains("number of partitions"));
}

#[test]
fn random_text_never_panics() {
    let mut random = Random::from_number(42);
    let pieces =
        ["=", ",", "%", ".", "..", "+", ":", "9", "18446744073709551616", "s", "never", "é", "-"];
    for round in 0..20_000 {
        let text: String = (0..random.below(12))
            .map(|_| {
                let key = KEYS[random.below(KEYS.len() as u64) as usize];
                let piece = pieces[random.below(pieces.len() as u64) as usize];
                if random.chance(0.3) { key } else { piece }
            })
            .collect();
        if let Ok(config) = text.parse::<LinkConfig>() {
            assert_eq!(config.validate(), Ok(()), "round {round}: {text}");
        }
    }
}

fn random_time(random: &mut Random) -> std::time::Duration {
    std::time::Duration::from_micros(10 + random.below(1_000_000))
}

fn random_loss(random: &mut Random) -> Loss {
    match random.below(5) {
        4 => Loss::burst_time(random.unit() * 0.9, random_time(random)).unwrap(),
        0 => Loss::None,
        1 => Loss::Random { p: random.unit() },
        2 => Loss::burst(random.unit() * 0.5, 1.0 + random.unit() * 50.0).unwrap(),
        _ => Loss::GilbertElliott {
            p_enter: random.unit(),
            p_leave: random.unit(),
            loss_good: random.unit(),
            loss_bad: random.unit(),
        },
    }
}

fn random_window(random: &mut Random) -> Window {
    let from = random.below(1 << 40);
    let to = if random.chance(0.2) { u64::MAX } else { from + 1 + random.below(1 << 40) };
    Window { from: Time::from_nanos(from), to: Time::from_nanos(to) }
}

fn random_aqm(random: &mut Random) -> Option<Aqm> {
    let (target, interval) = (random_time(random), random_time(random));
    match random.below(4) {
        0 => Some(Aqm::CoDel { target, interval }),
        1 => Some(Aqm::DualPi2 { target }),
        2 => Some(Aqm::CODEL),
        _ => None,
    }
}

fn random_config(random: &mut Random) -> LinkConfig {
    let rate_bits_per_s = random.chance(0.7).then(|| 1 + random.below(LinkConfig::RATE_MAX));
    let trace = rate_bits_per_s.is_none() && random.chance(0.5);
    let trace = trace.then(|| TraceSource::Cellular { seed: random.next_u64() });
    let has_queue = rate_bits_per_s.is_some() || trace.is_some();
    let mut ns = || Duration::from_nanos(1 + random.below(60_000_000_000));
    let (delay, jitter, reorder_by) = (ns(), ns(), ns());
    LinkConfig {
        delay,
        jitter,
        jitter_shape: if random.chance(0.5) { JitterShape::Normal } else { JitterShape::Uniform },
        keep_order: random.chance(0.5),
        loss: random_loss(random),
        duplicate: random.unit(),
        reorder: (random.below(1_000) as f64) / 1_000.0,
        reorder_by,
        corrupt: random.unit() / 2.0,
        corrupt_undetected: random.unit() / 1e9,
        rate_bits_per_s,
        trace,
        queue: QueueLimit {
            packets: random.below(1 << 20) as usize,
            bytes: random.below(1 << 30) as usize,
        },
        aqm: random_aqm(random).filter(|_| has_queue),
        ecn_clear: random.chance(0.5),
        partitions: (0..random.below(4)).map(|_| random_window(random)).collect(),
        mtu: random.chance(0.5).then(|| Mtu {
            from: Time::from_nanos(random.below(1 << 50)),
            ..Mtu::black_hole(1 + random.below(1 << 20) as usize)
        }),
        in_flight_max: 1 + random.below(1 << 20) as usize,
    }
}

#[test]
fn a_trace_in_a_file_is_read_by_whoever_has_files() {
    let lines = |name: &str| match name {
        "a b.trace" => Trace::parse("1\n2\n"),
        "bad" => Trace::parse("1\n2\n1\n"),
        _ => Err(TraceError::Unreadable { why: "no such file".to_owned() }),
    };
    let read = |text: &str| LinkConfig::parse_with(text, lines);
    let config = read("trace= a b.trace ,aqm=codel,delay=20ms").unwrap();
    let trace = config.trace.as_ref().map(TraceSource::trace).unwrap();
    assert_eq!(trace.at_ms(), [1, 2]);
    assert_eq!(config.to_string(), "delay=20ms,trace=a b.trace,aqm=codel");
    assert_eq!(read(&config.to_string()), Ok(config));
    for (text, part) in [
        ("trace=bad", "link: trace=bad: line 3: 1 ms after 2 ms"),
        ("trace=none", "link: trace=none: no such file"),
        ("trace=none,rate=1Mbit/s", "leave one of them out"),
        ("trace=none,delay=61s", "delay is 61s"),
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains(part), "{text}: {message}");
    }
    let unread = |_: &str| -> Result<Trace, TraceError> { panic!("a file is read for this") };
    assert!(LinkConfig::parse_with("trace=a,loss=2", unread).is_err());
}

#[test]
fn any_valid_configuration_survives_printing_and_parsing() {
    let mut random = Random::from_number(2_024);
    for round in 0..5_000 {
        let config = random_config(&mut random);
        assert_eq!(config.validate(), Ok(()), "round {round}");
        assert_eq!(parse(&config.to_string()), config, "round {round}: {config}");
    }
}
