//! The tables of `bench safenet`, and its JSON.

use super::row::{Level, Results, Row};
use super::then::{NETWORK, Then};
use crate::output::{Table, line};
use dacapo_safenet::measure::Cast;
use dacapo_sys::packet::Inlet;
use serde_json::{Value, json};

/// The tables, for people.
pub fn print(results: &Results) {
    let check = if results.is_checked { "" } else { ", the bytes of messages unchecked" };
    line(format_args!("over {}{check}", results.network));
    for (place, names) in places(&results.rows) {
        line(format_args!("{place}: {}", names.join("; ")));
    }
    line("");
    print_points(&results.rows);
    line("");
    print_fits(results);
    if let Some((above, times)) = results.beside_udp() {
        line(format_args!(
            "\nusers beside plain UDP: {above:+.2} µs at 0 bytes, {times:.2} × the rise per byte"
        ));
    }
    if results.rows.iter().any(|row| row.frames == Some("ring")) {
        line(format_args!("\nthe ring: {}", Inlet::Ring));
    }
    for (level, why) in &results.left_out {
        line(format_args!("\nleft out: {level}: {why}"));
    }
    line(
        "\nThen: Figures 1 to 8 of \"A Performance Evaluation of the SAFENET Lightweight System\" \
         (Virginia): Ada\nprograms, XTP on a board of its own, FDDI; to one host its users were \
         held to a rate of 12 Mbit/s, which is their\nlimit. Its group had one receiver for the \
         latency and two for the throughput. Its network was measured between\nboards without \
         hosts. Limits are about.",
    );
}

/// The places, and the names of the rows there.
fn places(rows: &[Row]) -> Vec<(&'static str, Vec<&'static str>)> {
    let mut places: Vec<(&str, Vec<&str>)> = Vec::new();
    for row in rows {
        match places.iter_mut().find(|(place, _)| *place == row.place) {
            Some((_, names)) => names.push(row.name),
            None => places.push((row.place, vec![row.name])),
        }
    }
    places
}

fn print_points(rows: &[Row]) {
    let mut table = Table::new(&[
        "level",
        "bytes",
        "latency µs",
        "above the line µs",
        "throughput Mbit/s",
        "arrived %",
    ]);
    for row in rows {
        for (point, rest) in row.points.iter().zip(row.residuals()) {
            table.row(vec![
                row.name.into(),
                point.len.into(),
                format!("{:.2}", point.latency_us).into(),
                format!("{rest:.2}").into(),
                format!("{:.0}", point.mbit_s).into(),
                format!("{:.1}", point.arrived * 100.0).into(),
            ]);
        }
    }
    table.print();
}

fn print_fits(results: &Results) {
    let mut table = Table::new(&[
        "latency, as a line",
        "µs at 0 bytes",
        "ns per byte",
        "most above µs",
        "then: µs at 0 bytes",
        "ns per byte",
        "limit Mbit/s",
    ]);
    for row in &results.rows {
        let (at_0, slope) = row.fit().unwrap_or((f64::NAN, f64::NAN));
        let most = row.residuals().into_iter().fold(0.0, f64::max);
        let mut cells = vec![row.name.into()];
        cells.extend([at_0, slope * 1e3, most].map(|value| format!("{value:.2}").into()));
        cells.extend(columns(row.then.as_ref()).map(Into::into));
        table.row(cells);
    }
    if results.rows.iter().all(|row| row.level != Level::Mac) {
        let mut cells = vec!["network (FDDI)".into()];
        cells.extend(["-"; 3].map(Into::into));
        cells.extend(columns(Some(&NETWORK)).map(Into::into));
        table.row(cells);
    }
    table.print();
}

fn columns(then: Option<&Then>) -> [String; 3] {
    let (latency, limit) = (then.and_then(|it| it.latency), then.and_then(|it| it.limit));
    let of = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    [
        of(latency.map(|it| it.intercept_us)),
        of(latency.map(|it| it.slope_ns)),
        of(limit.map(|it| it.mbit_s)),
    ]
}

/// The same for programs.
pub fn to_json(results: &Results) -> Value {
    let rows: Vec<Value> = results.rows.iter().map(row_json).collect();
    let left_out: Vec<Value> =
        results.left_out.iter().map(|(level, why)| json!({ "level": level, "why": why })).collect();
    let beside = results
        .beside_udp()
        .map(|(above, times)| json!({ "intercept_above_us": above, "slope_ratio": times }));
    json!({
        "network": results.network,
        "checked": results.is_checked,
        "levels": rows,
        "user_beside_plain_udp": beside,
        "left_out": left_out,
        "then_network": then_json(&NETWORK),
    })
}

fn row_json(row: &Row) -> Value {
    let (cast, receivers) = match row.cast {
        Cast::Unicast => ("unicast", 1),
        Cast::Multicast { receivers } => ("multicast", receivers),
    };
    let points = row.points.iter().zip(row.residuals()).map(|(point, rest)| {
        json!({
            "bytes": point.len,
            "latency_us": point.latency_us,
            "residual_us": rest,
            "throughput_mbit_s": point.mbit_s,
            "arrived": point.arrived,
        })
    });
    let points: Vec<Value> = points.collect();
    let fit = row
        .fit()
        .map(|(at_0, slope)| json!({ "intercept_us": at_0, "slope_ns_per_byte": slope * 1e3 }));
    json!({
        "level": row.level.name(),
        "cast": cast,
        "receivers": receivers,
        "place": row.place,
        "frames": row.frames,
        "points": points,
        "fit": fit,
        "then": row.then.as_ref().map(then_json),
    })
}

fn then_json(then: &Then) -> Value {
    json!({
        "figures": [then.limit.map(|it| it.figure), then.latency.map(|it| it.figure)],
        "intercept_us": then.latency.map(|it| it.intercept_us),
        "slope_ns_per_byte": then.latency.map(|it| it.slope_ns),
        "limit_mbit_s": then.limit.map(|it| it.mbit_s),
    })
}
