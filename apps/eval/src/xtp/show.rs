//! The tables of `bench xtp`, and its JSON.

use super::derived::{Costs, costs, find, places};
use super::then::{BEST, SOURCE, WAITING};
use super::{Measured, near::Run};
use crate::cli::{BenchXtpArgs, net_word};
use crate::output::{Cell, Table, line};
use crate::words::{bytes_words, rate_words, seconds_words};
use serde_json::{Value, json};

/// The tables, for people.
pub fn print(args: &BenchXtpArgs, all: &[Measured]) {
    line(format_args!("{}\n", how(args)));
    for packet_len in args.packet_len.iter().copied() {
        line(format_args!("packets of {packet_len} bytes"));
        print_points(args, all, packet_len);
        line("");
    }
    let lost: u64 = all.iter().map(|measured| measured.sum.bytes_lost).sum();
    let sent: u64 = all.iter().map(|measured| measured.sum.bytes_sent).sum();
    line(format_args!(
        "Mbit/s as read by the far end's user, without pauses, and % of a processor at the near \
         and the far end.\nReliability: ack-un less ack-rel; waiting: blast less ack-un. Lost: \
         {lost} of {sent} bytes.\n"
    ));
    print_then();
}

/// How it was measured.
fn how(args: &BenchXtpArgs) -> String {
    let far = far(args);
    let mut how =
        format!("over {}, to {far}, runs of {}", net_word(args.over), bytes_words(args.bytes));
    if let Some(most) = args.run_max {
        how += &format!(", of {} at most", seconds_words(most.as_secs_f64()));
    }
    // Who started the far end has said what its window is.
    if args.host.is_none() {
        how += &format!(", windows of {}", bytes_words(args.window));
    }
    if let Some(rate) = args.rate {
        how += &format!(", at most {}", rate_words(f64::from(rate) * 8.0));
    }
    if args.no_check {
        how += ", bytes unchecked in every mode";
    }
    how
}

fn far(args: &BenchXtpArgs) -> &str {
    args.host.as_deref().unwrap_or("a process on this host")
}

fn print_points(args: &BenchXtpArgs, all: &[Measured], packet_len: u32) {
    let mut heading = vec!["bytes of a send".to_owned()];
    for mode in &args.mode {
        heading.extend([net_word(*mode), "CPU %".to_owned()]);
    }
    heading.extend(["reliability", "waiting"].map(str::to_owned));
    let heading: Vec<&str> = heading.iter().map(String::as_str).collect();
    let mut table = Table::new(&heading);
    let costs = costs(all);
    for place in places(all).into_iter().filter(|place| place.0 == packet_len) {
        let mut cells: Vec<Cell> = vec![place.1.into()];
        for mode in &args.mode {
            let sum = find(all, place, *mode).map(|measured| &measured.sum);
            cells.push(sum.map_or_else(String::new, |sum| short(sum.mbit_s())).into());
            cells.push(sum.map_or_else(String::new, cpu_words).into());
        }
        let cost = costs.iter().find(|costs| (costs.packet_len, costs.send_len) == place);
        let words = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        cells.push(words(cost.and_then(|costs| costs.reliability)).into());
        cells.push(words(cost.and_then(|costs| costs.waiting)).into());
        table.row(cells);
    }
    table.print();
}

/// Three digits that count.
fn short(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

fn cpu_words(sum: &Run) -> String {
    let share = |cpu: f64| cpu / sum.seconds.max(1e-9) * 100.0;
    format!("{:.0}/{:.0}", share(sum.near_cpu_s), share(sum.far_cpu_s))
}

fn print_then() {
    let mut table = Table::new(&[
        "1995, the best, Mbit/s",
        "ack-rel",
        "ack-un",
        "blast",
        "reliability",
        "waiting",
    ]);
    for best in BEST {
        let (reliability, waiting) = (best.ack_un - best.ack_rel, best.blast - best.ack_un);
        let mut cells: Vec<Cell> = vec![format!("packets of {}", best.packet_len).into()];
        let figures = [best.ack_rel, best.ack_un, best.blast, reliability, waiting];
        cells.extend(figures.map(|value| Cell::from(format!("{value:.2}"))));
        table.row(cells);
    }
    table.print();
    let waiting: Vec<String> =
        WAITING.iter().map(|(len, mbit_s)| format!("{mbit_s} by sends of {len}")).collect();
    line(format_args!(
        "Waiting with packets of 2048, about: {}.\nFrom the text of {SOURCE}:\nATM of 100 Mbit/s \
         between devices with an ARM processor. Packets are its network buffers of 2 and 4 \
         Kbytes;\nreliability and waiting in the table are differences of the best, which it \
         does not print. Its curves have no\nnumbers; none was read off them.",
        waiting.join(", ")
    ));
}

/// The same for programs.
pub fn to_json(args: &BenchXtpArgs, all: &[Measured]) -> Value {
    let points: Vec<Value> = all.iter().map(point_json).collect();
    let derived: Vec<Value> = costs(all).iter().map(costs_json).collect();
    json!({
        "network": net_word(args.over),
        "far": far(args),
        "bytes": args.bytes,
        "seconds": args.seconds.as_secs_f64(),
        "window": args.window,
        "rate_bytes_per_s": args.rate,
        "run_max_seconds": args.run_max.map(|most| most.as_secs_f64()),
        "no_check": args.no_check,
        "points": points,
        "derived": derived,
        "then": then_json(),
    })
}

fn point_json(measured: &Measured) -> Value {
    let Measured { point, runs, sum } = measured;
    let gb = sum.bytes_read as f64 * 1e-9;
    let per_gb = |cpu: f64| if gb > 0.0 { json!(cpu / gb) } else { Value::Null };
    let share = |cpu: f64| cpu / sum.seconds.max(1e-9);
    json!({
        "mode": net_word(point.mode),
        "packet_len": point.packet_len,
        "send_len": point.send_len,
        "runs": runs,
        "seconds": sum.seconds,
        "paused_seconds": sum.paused_seconds,
        "read_seconds": sum.read_seconds,
        "bytes_sent": sum.bytes_sent,
        "bytes_read": sum.bytes_read,
        "bytes_lost": sum.bytes_lost,
        "closes": sum.closes(),
        "mbit_per_s": sum.mbit_s(),
        "mbit_per_s_with_pauses": sum.mbit_s_with_pauses(),
        "cpu_share": { "near": share(sum.near_cpu_s), "far": share(sum.far_cpu_s) },
        "cpu_s_per_gb": {
            "near": per_gb(sum.near_cpu_s),
            "far": per_gb(sum.far_cpu_s),
            "both": per_gb(sum.near_cpu_s + sum.far_cpu_s),
        },
        "packets": { "sent": sum.packets_sent, "received": sum.packets_received },
        "calls": { "send": sum.sends, "receive": sum.receives },
        "read_by_100_ms": sum.course.to_json(),
    })
}

fn costs_json(costs: &Costs) -> Value {
    json!({
        "packet_len": costs.packet_len,
        "send_len": costs.send_len,
        "reliability_mbit_per_s": costs.reliability,
        "waiting_mbit_per_s": costs.waiting,
    })
}

fn then_json() -> Value {
    let best = BEST.map(|best| {
        json!({
            "packet_len": best.packet_len,
            "ack_rel": best.ack_rel,
            "ack_un": best.ack_un,
            "blast": best.blast,
        })
    });
    let waiting = WAITING.map(|(len, mbit_s)| json!({ "send_len": len, "mbit_per_s": mbit_s }));
    json!({ "source": SOURCE, "best_mbit_per_s": best, "waiting_about": waiting })
}
