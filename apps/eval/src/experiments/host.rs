//! What commands of this program measure on this host: an entry each.

use super::own::{By, Of, Own};

macro_rules! lift {
    ($called:literal, $batch:literal) => {
        concat!(
            "marginal[module=touch batch=",
            $batch,
            " called=",
            $called,
            "].per_packet_and_module.median_ns"
        )
    };
}

macro_rules! response {
    ($command:literal) => {
        concat!("rows[command=", $command, "].now.average_us")
    };
}

/// All of them.
pub static ALL: [Own; 8] = [
    Own {
        id: "lift",
        what: "what a module costs each packet that it touches, in the runner and without one",
        of: Of::One(&["lift", "--seconds", "3", "--json"]),
        patience_s: 60,
        seconds: 3.0,
        rounds: [7, 7],
        by: By::Clock,
        figures: &[
            ("batched_ns", "ns a module, batched", false, lift!("counted", 32)),
            ("single_ns", "ns a module, alone", false, lift!("counted", 1)),
            ("bare_ns", "ns a module, batched, no runner", false, lift!("monomorphised", 32)),
            ("timed_ns", "ns a module, batched, timed", false, lift!("timed", 32)),
        ],
        goals: &[
            ("lift", "batched_ns", "a module that touches the header, batch of 32", false, 0.8),
            ("lift", "single_ns", "the same, one by one", false, 4.0),
        ],
    },
    Own {
        id: "choice",
        what: "choosing a graph and a transport, with why, or refusing with why",
        of: Of::One(&["choice", "--requests", "5000", "--json"]),
        patience_s: 120,
        seconds: 3.0,
        rounds: [7, 7],
        by: By::Clock,
        figures: &[
            ("p99_us", "p99 µs", false, "all.p99_us"),
            ("p50_us", "p50 µs", false, "all.p50_us"),
            ("granted_p99_us", "granted, p99 µs", false, "granted.p99_us"),
            ("refused_p99_us", "refused, p99 µs", false, "refused.p99_us"),
        ],
        goals: &[("choice", "p99_us", "choice with explanation, p99", false, 1_000.0)],
    },
    Own {
        id: "transfer",
        what: "a file of 1 GiB by `dacapo send`, beside plain sockets with the same reads and hash",
        of: Of::One(&["transfer", "--rounds", "1", "--json"]),
        patience_s: 120,
        seconds: 6.0,
        rounds: [5, 5],
        by: By::Clock,
        figures: &[
            ("gbit_per_s", "send Gbit/s", true, "median.send.gbit_per_s"),
            ("plain_gbit_per_s", "plain Gbit/s", true, "median.plain.gbit_per_s"),
            ("rate_ratio", "× plain", true, "median.rate_ratio"),
            ("cpu_ratio", "CPU × plain", false, "median.cpu_ratio"),
        ],
        goals: &[
            ("transfer", "rate_ratio", "goodput to plain sockets", true, 1.0),
            ("transfer", "cpu_ratio", "processor time to plain sockets", false, 1.05),
        ],
    },
    Own {
        id: "control",
        what: "how long control commands take in the access module, as Tables 20, 22 to 24 of 1998",
        of: Of::One(&["control", "--rounds", "200", "--json"]),
        patience_s: 120,
        seconds: 15.0,
        rounds: [5, 5],
        by: By::Clock,
        figures: &[
            (
                "response_us",
                "from a command to its answer, µs",
                false,
                response!("from_a_command_to_its_answer"),
            ),
            ("init_us", "init µs", false, response!("init")),
            ("open_us", "open µs", false, response!("open")),
            ("play_us", "play µs", false, response!("play")),
            ("stop_us", "stop µs", false, response!("stop")),
            ("fwd_us", "fwd µs", false, response!("fwd")),
        ],
        goals: &[],
    },
    Own {
        id: "scale",
        what: "10,000 idle sessions, 100,000 opened and closed, between two processes",
        of: Of::One(&["scale", "--json"]),
        patience_s: 600,
        seconds: 60.0,
        rounds: [3, 3],
        by: By::Clock,
        figures: &[
            ("connection_kib", "a connection, KiB an end", false, "figures.connection_kib.near"),
            ("session_kib", "a session, KiB here", false, "figures.session_kib.near"),
            ("far_session_kib", "at the far end", false, "figures.session_kib.far"),
            ("idle_percent", "idle, % here", false, "figures.idle_percent.near"),
            ("far_idle_percent", "at the far end", false, "figures.idle_percent.far"),
            ("threads", "threads", false, "figures.threads.near"),
            ("growth_kib", "growth, KiB", false, "figures.growth_kib.near"),
            ("opened_per_s", "opened a second", true, "rates.opened_per_s"),
            ("turned_per_s", "opened and closed a second", true, "rates.opens_and_closes_per_s"),
        ],
        goals: &[
            ("scale", "connection_kib", "a connection, idle", false, 48.0),
            ("scale", "session_kib", "each further session", false, 8.0),
            ("scale", "far_session_kib", "the same at the far end", false, 8.0),
            ("scale", "idle_percent", "10,000 sessions, % of a processor", false, 0.15),
            ("scale", "far_idle_percent", "the same at the far end", false, 0.15),
            ("scale", "growth_kib", "100,000 opens and closes", false, 1_024.0),
            ("scale", "turned_per_s", "sessions a second, sustained", true, 1_000.0),
        ],
    },
    Own {
        id: "emulator",
        what: "what the emulator of `dacapo link` costs, beside sockets without one",
        of: Of::One(&["link", "--rounds", "1", "--seconds", "1", "--json"]),
        patience_s: 120,
        seconds: 15.0,
        rounds: [5, 5],
        by: By::Clock,
        figures: &[
            ("added_us", "added delay, p50 µs", false, "ways[way=relay].added_delay.p50_us"),
            ("late_us", "late at 20 ms, p99 µs", false, "ways[way=relay].late_at_20ms.p99_us"),
            (
                "per_s",
                "datagrams a second, 1400 B",
                true,
                "ways[way=relay].rates[bytes=1400 in_a_call=1].datagrams_per_s",
            ),
        ],
        goals: &[],
    },
    Own {
        id: "loopback",
        what: "a flow over udp from process to process of this host",
        of: Of::One(&["net", "--duration", "2s", "--json"]),
        patience_s: 60,
        seconds: 4.0,
        rounds: [7, 7],
        by: By::Clock,
        figures: &[
            ("gbit_per_s", "Gbit/s", true, "median.bulk.up.gbit_per_s"),
            ("cpu_s_per_gb", "CPU s/GB", false, "median.bulk.cpu_s_per_gb.both"),
            ("loss", "lost, of 1", false, "median.bulk.up.loss"),
            ("rtt_p50_us", "there and back p50 µs", false, "median.latency.rtt_us.p50"),
            ("rtt_p99_us", "p99 µs", false, "median.latency.rtt_us.p99"),
        ],
        goals: &[],
    },
    Own {
        id: "safenet",
        what: "messages over XTP by their length, as the SAFENET document, beside plain UDP",
        of: Of::One(&["safenet", "--no-check", "--seconds", "1", "--json"]),
        patience_s: 300,
        seconds: 100.0,
        rounds: [3, 3],
        by: By::Clock,
        figures: &[
            ("user_us", "a user's, at 0 B, µs", false, "levels[level=user].fit.intercept_us"),
            ("transport_us", "the transport's", false, "levels[level=transport].fit.intercept_us"),
            (
                "over_udp_us",
                "the transport's less UDP's",
                false,
                "levels[level=transport].fit.intercept_us - levels[level=udp].fit.intercept_us",
            ),
            (
                "slope_ratio",
                "slope × UDP",
                false,
                "levels[level=transport].fit.slope_ns_per_byte / \
                levels[level=udp].fit.slope_ns_per_byte",
            ),
        ],
        goals: &[
            ("safenet", "over_udp_us", "latency by length, intercept less plain UDP's", false, 3.0),
            ("safenet", "slope_ratio", "latency by length, slope to plain UDP's", false, 1.2),
        ],
    },
];
