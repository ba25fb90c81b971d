//! The tables of `bench safenet`, and its JSON.
//!
//! What it is not: a measurement.

use super::then::{NETWORK, Then};
use super::{Point, Row};
use crate::output::{Table, line};
use dacapo_safenet::measure::{Cast, Level};
use serde_json::{Value, json};

/// The tables, for people.
pub fn print(rows: &[Row]) {
    let mut table =
        Table::new(&["level", "bytes", "latency µs", "above the line µs", "throughput Mbit/s"]);
    for row in rows {
        for (Point { len, latency_us, mbit_s }, rest) in row.points.iter().zip(row.residuals()) {
            table.row(vec![
                row.name.into(),
                (*len).into(),
                format!("{latency_us:.2}").into(),
                format!("{rest:.2}").into(),
                format!("{mbit_s:.0}").into(),
            ]);
        }
    }
    table.print();
    line("");
    print_fits(rows);
    line(
        "\nThen: Figures 1 to 8 of \"A Performance Evaluation of the SAFENET Lightweight System\" \
         (Virginia): Ada\nprograms, XTP on a board of its own, FDDI; its users were held to a rate \
         of 12 Mbit/s. Its group had one\nreceiver for the latency and two for the throughput. \
         Now: all ends in one process, no network.",
    );
}

fn print_fits(rows: &[Row]) {
    let mut table = Table::new(&[
        "latency, as a line",
        "µs at 0 bytes",
        "ns per byte",
        "most above µs",
        "then: µs at 0 bytes",
        "ns per byte",
        "limit Mbit/s",
    ]);
    for row in rows {
        let (at_0, slope) = row.fit().unwrap_or((f64::NAN, f64::NAN));
        let most = row.residuals().into_iter().fold(0.0, f64::max);
        let mut cells = vec![row.name.into()];
        cells.extend([at_0, slope * 1e3, most].map(|value| format!("{value:.2}").into()));
        cells.extend(columns(row.then.as_ref()).map(Into::into));
        table.row(cells);
    }
    let mut cells = vec!["network (FDDI)".into()];
    cells.extend(["-"; 3].map(Into::into));
    cells.extend(columns(Some(&NETWORK)).map(Into::into));
    table.row(cells);
    table.print();
}

fn columns(then: Option<&Then>) -> [String; 3] {
    then.map_or_else(Default::default, |then| {
        [
            format!("{}", then.intercept_us),
            format!("{}", then.slope_ns),
            format!("{}", then.limit_mbit_s),
        ]
    })
}

/// The same for programs.
pub fn to_json(rows: &[Row]) -> Value {
    let rows: Vec<Value> = rows.iter().map(row_json).collect();
    json!({ "network": "memory", "levels": rows, "then_network": then_json(&NETWORK) })
}

fn row_json(row: &Row) -> Value {
    let level = if row.level == Level::User { "user" } else { "transport" };
    let (cast, receivers) = match row.cast {
        Cast::Unicast => ("unicast", 1),
        Cast::Multicast { receivers } => ("multicast", receivers),
    };
    let point = |(point, rest): (&Point, f64)| {
        json!({
            "bytes": point.len,
            "latency_us": point.latency_us,
            "residual_us": rest,
            "throughput_mbit_s": point.mbit_s,
        })
    };
    let points: Vec<Value> = row.points.iter().zip(row.residuals()).map(point).collect();
    let fit = row
        .fit()
        .map(|(at_0, slope)| json!({ "intercept_us": at_0, "slope_ns_per_byte": slope * 1e3 }));
    json!({
        "level": level,
        "cast": cast,
        "receivers": receivers,
        "points": points,
        "fit": fit,
        "then": row.then.as_ref().map(then_json),
    })
}

fn then_json(then: &Then) -> Value {
    json!({
        "figures": then.figures,
        "intercept_us": then.intercept_us,
        "slope_ns_per_byte": then.slope_ns,
        "limit_mbit_s": then.limit_mbit_s,
    })
}
