//! A stream whose rate is set to that of a link fills the link, whatever the link loses: 500
//! Mbit/s, 10 ms each way, as over UDP at an MTU of 1500. In virtual time, so a seed gives one
//! figure.
//!
//! `XTP_LOSS` (a share, 0 to 0.9) and `XTP_WINDOW` (bytes) ask for one other figure, of which it is
//! only held that something arrives and no more than the link carries; `--nocapture` shows it.

#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod common;

use common::flow::Flow;
use common::world::World;
use dacapo_base::Time;
use dacapo_link::{LinkConfig, Loss};
use dacapo_xtp::wire::{HEADER_LEN, Limits};
use dacapo_xtp::{Config, Listen};
use std::str::FromStr;
use std::time::Duration;

const LINE_BITS_PER_S: u64 = 500_000_000;
/// What UDP over IPv4 takes of 1,500 bytes, and what a packet of XTP has then.
const BELOW_LEN: usize = 28;
const PACKET_LEN: usize = 1_500 - BELOW_LEN;
/// What a link carries of data in full packets, bytes per second.
const LINK: f64 = LINE_BITS_PER_S as f64 / 8.0 * (PACKET_LEN - HEADER_LEN) as f64 / 1_500.0;
/// The link of `common` knows no headers below XTP: it is slower by their share.
const RATE_BITS_PER_S: u64 = LINE_BITS_PER_S * PACKET_LEN as u64 / 1_500;
/// Nearly seven round trips of the link, while what is lost is sent again, and again.
const WINDOW_LEN: usize = 8 << 20;

/// What is counted, seconds: what waits behind a gap at its end is a tenth of one.
const COUNTED_S: u32 = 3;

/// Bytes per second that are read, as a share of what the link carries, after the first 300 ms.
fn share(loss: f64, window_len: usize) -> f64 {
    let link = LinkConfig {
        delay: Duration::from_millis(10),
        rate_bits_per_s: Some(RATE_BITS_PER_S),
        loss: if loss > 0.0 { Loss::Random { p: loss } } else { Loss::None },
        ..LinkConfig::default()
    };
    // What is lost does not reach the queue: so much has to leave that the rest fills the link.
    let out_rate = (LINK / (1.0 - loss)) as u32;
    // No whole number of packets: what is left of a period goes into a short one.
    let out_burst = 45 * (PACKET_LEN - HEADER_LEN) as u32 + 700;
    let limits = Limits { out_rate, out_burst, ..Limits::default() };
    let config = Config { packet_len_max: PACKET_LEN, buffer_len: window_len, ..Config::default() };
    let mut world = World::new(1, config, &link);
    world.ends[1].listen(Listen::on(7)).unwrap();
    let mut flow = Flow::open(&mut world, limits);
    let begin = Time::from_millis(300);
    let end = begin + Duration::from_secs(COUNTED_S.into());
    flow.read_between(&mut world, begin, end) as f64 / LINK / f64::from(COUNTED_S)
}

/// What the environment says under a name.
fn asked<T: FromStr>(name: &str) -> Option<T> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name}={text}: this is no number of its kind")))
}

#[test]
fn a_stream_fills_its_link_whatever_that_loses() {
    let (loss, window_len) = (asked("XTP_LOSS"), asked("XTP_WINDOW"));
    let is_asked = loss.is_some() || window_len.is_some();
    let window_len = window_len.unwrap_or(WINDOW_LEN);
    let rows = match is_asked {
        true => vec![(loss.unwrap_or(0.0), window_len, 0.000_1)],
        false => vec![
            (0.0, WINDOW_LEN, 0.99),
            (0.01, WINDOW_LEN, 0.98),
            (0.05, WINDOW_LEN, 0.98),
            (0.1, WINDOW_LEN, 0.98),
            (0.3, 2 * WINDOW_LEN, 0.9),
        ],
    };
    for (loss, window_len, least) in rows {
        assert!((0.0..=0.9).contains(&loss), "XTP_LOSS={loss}: a share of 0 to 0.9");
        let share = share(loss, window_len);
        println!("{:.0} % loss, window {window_len}: {share:.4} of the link", loss * 100.0);
        assert!((least..1.02).contains(&share), "{:.0} % loss: {share}", loss * 100.0);
    }
}
