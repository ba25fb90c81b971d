//! What `bench net` says to programs.

use super::{Measured, Round, Whose, load_average, processors};
use crate::cli::net_word;
use crate::net::ask::ECHO_LEN;
use crate::net::figures::{Bulk, Delay, Way};
use dacapo::SegmentCounts;
use serde_json::{Map, Value, json};

impl Measured<'_> {
    /// Everything for programs.
    pub fn to_json(&self) -> Value {
        let rounds: Vec<Value> = self.rounds.iter().map(|round| self.round_json(round)).collect();
        let receivers: Vec<Value> =
            (self.far_ends.iter().filter(|_| self.ask.transport.is_shared()))
                .map(|(host, address)| json!({ "host": host, "address": address.to_string() }))
                .collect();
        let ask = self.ask;
        json!({
            "far_end": self.far_ends.first().map(|(_, address)| address.to_string()),
            "far_end_is_on_this_host": self.args.are_far_ends_here(),
            "receivers": receivers,
            "transport": net_word(ask.transport),
            "graph": self.graph(),
            "direction": net_word(ask.direction),
            "flows": ask.flows,
            "gso_is_allowed": self.config.sockets.gso,
            "gro_is_allowed": self.config.sockets.gro,
            "unit_bytes": ask.unit_len,
            "bound_bps": ask.bound_bps(),
            "bound_was_asked_for": ask.rate_bps.is_some(),
            "wait": net_word(ask.wait),
            "duration_s_max": ask.duration.as_secs_f64(),
            "bytes_max": ask.bytes,
            "load_average": load_average(),
            "processors": processors(),
            "rounds": rounds,
            "median": self.median_json(),
        })
    }

    fn median_json(&self) -> Value {
        let has_bulk = self.rounds.iter().any(|round| round.bulk.is_some());
        let bulk = has_bulk.then(|| self.median_bulk(None));
        let is_shared = self.ask.transport.is_shared();
        let receivers = self.far_ends.iter().filter(|_| is_shared).enumerate();
        let receivers = receivers.map(|(at, (host, _))| {
            let mut its = self.median_bulk(Some(at));
            its.insert("host".to_owned(), json!(host));
            Value::from(its)
        });
        let receivers: Vec<Value> = receivers.collect();
        let has_delay = self.rounds.iter().any(|round| round.delay.is_some());
        let delay = has_delay.then(|| {
            json!({
                "rtt_us": {
                    "min": self.delay(|it| it.min_us),
                    "p50": self.delay(|it| it.p50_us),
                    "p99": self.delay(|it| it.p99_us),
                    "p999": self.delay(|it| it.p999_us),
                    "max": self.delay(|it| it.max_us),
                },
                "cpu_us_per_round_trip": self.delay(|it| it.cpu_us),
            })
        });
        json!({ "bulk": bulk, "receivers": receivers, "latency": delay })
    }

    fn median_bulk(&self, whose: Whose) -> Map<String, Value> {
        let mut bulk = Map::new();
        for (at, name) in self.ways().iter().enumerate() {
            let way = json!({
                "gbit_per_s": self.way(whose, at, |it| it.arrived.gbit_per_s()),
                "units_per_s": self.way(whose, at, |it| it.arrived.units_per_s()),
                "packets_per_s": self.packets(whose, at),
                "loss": self.way(whose, at, |it| it.sums.loss()),
                "jitter_us": self.way(whose, at, |it| it.arrived.jitter_us),
                "datagrams_per_send_call_at_least": self.calls_at_least(at),
            });
            bulk.insert((*name).to_owned(), way);
        }
        let cpu = json!({
            "near": self.bulk(whose, |it| it.near_cpu),
            "far": self.bulk(whose, |it| it.far_cpu),
            "both": self.bulk(whose, |it| it.near_cpu + it.far_cpu),
        });
        bulk.insert("cpu_s_per_gb".to_owned(), cpu);
        bulk
    }

    fn round_json(&self, round: &Round) -> Value {
        let named = round.receivers.iter().zip(&self.far_ends);
        let receivers = named.map(|(bulk, (host, _))| {
            let mut its = bulk_json(bulk);
            its.insert("host".to_owned(), json!(host));
            Value::from(its)
        });
        let receivers: Vec<Value> = receivers.collect();
        let bulk = round.bulk.as_ref().map(bulk_json);
        let delay = round.delay.as_ref().map(|it| delay_json(it, self.args.samples));
        json!({ "bulk": bulk, "receivers": receivers, "latency": delay })
    }
}

fn bulk_json(bulk: &Bulk) -> Map<String, Value> {
    let mut map: Map<String, Value> =
        bulk.ways.iter().map(|way| (way.name.to_owned(), way_json(way))).collect();
    let cpu = json!({
        "near": bulk.near_cpu, "far": bulk.far_cpu, "both": bulk.near_cpu + bulk.far_cpu,
    });
    map.insert("cpu_s_per_gb".to_owned(), cpu);
    let units = json!({ "near": bulk.near_units_per_turn, "far": bulk.far_units_per_turn });
    map.insert("units_per_turn".to_owned(), units);
    map
}

fn delay_json(it: &Delay, has_samples: bool) -> Value {
    let mut value = json!({
        "unit_bytes": ECHO_LEN,
        "n": it.count,
        "lost": it.lost,
        "rtt_us": {
            "min": it.min_us, "p50": it.p50_us, "p99": it.p99_us, "p999": it.p999_us,
            "max": it.max_us,
        },
        "cpu_us_per_round_trip": it.cpu_us,
        "over_5_ms": it.over_5_ms,
    });
    if has_samples {
        value["one_way_us"] = it.one_way_us.to_json();
    }
    value
}

fn way_json(way: &Way) -> Value {
    let (arrived, sums) = (&way.arrived, &way.sums);
    json!({
        "gbit_per_s": arrived.gbit_per_s(),
        "units_per_s": arrived.units_per_s(),
        "packets_per_s": arrived.packets_per_s,
        "seconds": arrived.seconds,
        "jitter_us": arrived.jitter_us,
        "loss": sums.loss(),
        "units_sent": sums.sent,
        "units_delivered": sums.delivered,
        "units_late": sums.late,
        "units_lost": sums.lost,
        "units_dropped": sums.dropped,
        "units_unknown": sums.unknown,
        "units_duplicate": sums.duplicates,
        "units_not_sent": sums.not_sent,
        "units_reordered": arrived.reordered,
        "bytes_delivered": arrived.bytes,
        "closes": sums.closes(),
        "datagrams_per_send_call": calls_json(&way.sends),
    })
}

/// The same for programs: `calls` by `at_least` and fewer than twice as many datagrams each, the
/// last without an upper end.
fn calls_json(sends: &SegmentCounts) -> Value {
    let counts = sends.0.iter().enumerate();
    let buckets: Vec<Value> = counts
        .map(|(bucket, calls)| json!({ "at_least": 1_u64 << bucket, "calls": calls }))
        .collect();
    json!({
        "median_at_least": sends.median_at_least(),
        "calls": sends.calls(),
        "counts": buckets,
    })
}
