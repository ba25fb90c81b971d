//! What an emulated path has done, for people and for programs.
//!
//! ```text
//!   sent + copies = delivered + every kind of drop + in flight        one row per direction
//! ```

use crate::output::{self, Cell, Ink, Table, line};
use dacapo::emulator::{DelayRecord, LinkStats};
use dacapo::emulator::{PathStats, Way};
use serde_json::{Value, json};
use std::time::Duration;

/// A counter that ends what was handed to a link, and its name.
type Drop = (&'static str, fn(&LinkStats) -> u64);

const DROPS: [Drop; 7] = [
    ("+ lost", |it| it.lost_random + it.lost_burst),
    ("+ corrupted", |it| it.corrupted_detected),
    ("+ queue full", |it| it.dropped_queue),
    ("+ aqm", |it| it.dropped_aqm),
    ("+ cut", |it| it.dropped_partition),
    ("+ too long", |it| it.dropped_mtu),
    ("+ overflow", |it| it.overflow),
];

/// Prints the totals.
pub fn print(stats: &PathStats) {
    let is_seen = |drop: &&Drop| Way::ALL.iter().any(|way| (drop.1)(stats.way(*way)) > 0);
    // Losses are always shown, what a link does not do only where it happened.
    let drops: Vec<&Drop> = DROPS
        .iter()
        .enumerate()
        .filter(|(at, it)| *at == 0 || is_seen(it))
        .map(|it| it.1)
        .collect();
    let mut heading = vec!["direction", "sent", "+ copies", "= delivered"];
    heading.extend(drops.iter().map(|drop| drop.0));
    heading.extend(["+ in flight", "sum"]);
    let mut table = Table::new(&heading);
    for way in Way::ALL {
        let (link, in_flight) = (stats.way(way), stats.in_flight(way));
        let mut row: Vec<Cell> = vec![way.name().into(), link.sent.into(), link.duplicated.into()];
        row.push(link.delivered.into());
        row.extend(drops.iter().map(|drop| (drop.1)(link).into()));
        row.push(in_flight.into());
        row.push(match link.closes(in_flight) {
            true => Cell::new("closes", Ink::Good),
            false => Cell::new("DOES NOT CLOSE", Ink::Bad),
        });
        table.row(row);
    }
    table.print();
    notes(stats).iter().for_each(line);
}

/// What else there is to say.
fn notes(stats: &PathStats) -> Vec<String> {
    let mut notes = Vec::new();
    let both = |pick: fn(&LinkStats) -> u64| pick(&stats.forward) + pick(&stats.back);
    let altered = both(|it| it.corrupted_undetected);
    if altered > 0 {
        notes.push(format!("altered, and no checksum of the network shows it: {altered}"));
    }
    let sent_on = both(|it| it.corrupted_sent_on);
    if sent_on > 0 {
        notes.push(format!("altered, and sent on with a wrong checksum: {sent_on}"));
    }
    let marked = both(|it| it.marked);
    if marked > 0 {
        notes.push(format!("marked as having met congestion (CE): {marked}"));
    }
    let moved = both(|it| it.reordered);
    if moved > 0 {
        notes.push(format!("delivered after one that was sent later: {moved}"));
    }
    if let (Some(p50), Some(p99)) = (stats.lateness.p50(), stats.lateness.p99()) {
        notes.push(format!(
            "left {:.0} µs after it was due (median), {:.0} µs (p99)",
            us(p50),
            us(p99)
        ));
    }
    for (count, what) in [
        (stats.unsent, "delivered by a link and not taken at the far end"),
        (stats.refused, "of clients beyond the limit, never on a link"),
        (stats.kernel_drops, "dropped by the kernel before the emulator read them"),
    ] {
        if count > 0 {
            notes.push(format!("besides: {count} {what}"));
        }
    }
    notes
}

/// A line that says how it stands.
pub fn interval(stats: &PathStats) -> String {
    let way = |way: Way| {
        let link = stats.way(way);
        let share = 100.0 * link.dropped() as f64 / (link.sent + link.duplicated).max(1) as f64;
        let (name, in_flight) = (way.name(), stats.in_flight(way));
        format!(
            "{name}: {} sent, {} delivered, {} dropped ({share:.1} %), {in_flight} in flight",
            link.sent,
            link.delivered,
            link.dropped(),
        )
    };
    let [forward, back] = Way::ALL.map(way);
    let clients = match stats.clients {
        0 => String::new(),
        1 => "  1 client".to_owned(),
        count => format!("  {count} clients"),
    };
    format!("{forward}  {back}{clients}")
}

/// All of it for programs.
pub fn to_json(stats: &PathStats) -> Value {
    let way = |way: Way| link_json(stats.way(way), stats.in_flight(way));
    json!({
        "forward": way(Way::Forward),
        "back": way(Way::Back),
        "lateness_us": delay_json(&stats.lateness),
        "unsent": stats.unsent,
        "clients": stats.clients,
        "refused": stats.refused,
        "kernel_drops": stats.kernel_drops,
        "fault": stats.fault,
        "closes": stats.closes(),
    })
}

fn link_json(link: &LinkStats, in_flight: usize) -> Value {
    json!({
        "sent": link.sent,
        "duplicated": link.duplicated,
        "delivered": link.delivered,
        "lost_random": link.lost_random,
        "lost_burst": link.lost_burst,
        "corrupted_detected": link.corrupted_detected,
        "corrupted_sent_on": link.corrupted_sent_on,
        "corrupted_undetected": link.corrupted_undetected,
        "dropped_queue": link.dropped_queue,
        "dropped_aqm": link.dropped_aqm,
        "marked": link.marked,
        "dropped_partition": link.dropped_partition,
        "dropped_mtu": link.dropped_mtu,
        "overflow": link.overflow,
        "held_back": link.held_back,
        "reordered": link.reordered,
        "in_flight": in_flight,
        "sent_bytes": link.sent_bytes,
        "delivered_bytes": link.delivered_bytes,
        "delay_us": delay_json(&link.delay),
        "closes": link.closes(in_flight),
    })
}

fn delay_json(delay: &DelayRecord) -> Value {
    let figure = |delay: Option<Duration>| delay.map(us);
    json!({
        "min": figure(delay.min()),
        "p50": figure(delay.p50()),
        "p99": figure(delay.p99()),
        "max": figure(delay.max()),
    })
}

fn us(delay: Duration) -> f64 {
    delay.as_nanos() as f64 / 1e3
}

/// Prints the totals of a link that stood on the way of a session.
pub fn print_on_the_way(stats: &PathStats) {
    output::line("\nThe link's account, in datagrams (forward: to the server):");
    print(stats);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_drop_of_a_link_is_in_a_column() {
        let link = LinkStats {
            lost_random: 1,
            lost_burst: 20,
            corrupted_detected: 300,
            dropped_queue: 4_000,
            dropped_aqm: 80_000_000,
            dropped_partition: 50_000,
            dropped_mtu: 600_000,
            overflow: 7_000_000,
            ..LinkStats::default()
        };
        let sum: u64 = DROPS.iter().map(|drop| (drop.1)(&link)).sum();
        assert_eq!(sum, link.dropped());
    }

    #[test]
    fn what_never_came_to_a_link_is_said() {
        let stats = PathStats { kernel_drops: 7, unsent: 2, ..PathStats::default() };
        let notes = notes(&stats).join("\n");
        assert!(notes.contains("besides: 7 dropped by the kernel"), "{notes}");
        assert!(notes.contains("besides: 2 delivered by a link"), "{notes}");
        assert_eq!(to_json(&stats)["kernel_drops"], 7);
    }
}
