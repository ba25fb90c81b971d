//! The tables of `dacapo bench lift`, and the same as JSON.

use super::gstreamer::Found;
use super::measure::{LEN, Load, Way};
use super::modules::TOUCHED;
use super::rounds::{BATCHES, Buffer, Lives, MODULES, Samples};
use super::stats::Spread;
use super::then;
use crate::output::{Cell, Table, line};
use serde_json::{Value, json};

/// The modules, in the order of the tables.
const KINDS: [&str; 2] = ["touch", "pass"];

/// What was measured, to be shown.
pub struct Shown<'a> {
    /// Here.
    pub samples: &'a Samples,
    /// By GStreamer.
    pub gstreamer: &'a Found,
}

/// Two places; what is too small for them is nothing, and what could not be divided a dash.
fn ns(value: f64) -> Cell {
    match value.abs() {
        0.005.. => format!("{value:.2}").into(),
        0.0.. => "0.00".into(),
        _ => "-".into(),
    }
}

impl Shown<'_> {
    /// For people.
    pub fn print(&self) {
        self.print_marginals();
        line("");
        self.print_totals();
        line("");
        self.print_lives();
        line("");
        self.print_buffers();
        line("");
        self.print_then();
        self.print_notes();
    }

    fn print_marginals(&self) {
        let mut table = Table::new(&[
            "module",
            "batch",
            "called",
            "ns per packet and module",
            "q1",
            "q3",
            "x monomorphised",
        ]);
        for (module, batch, way) in cases() {
            let (spread, ratio) = self.samples.marginal(module, batch, way);
            table.row(vec![
                module.into(),
                batch.into(),
                way.name().into(),
                ns(spread.median_ns),
                ns(spread.low_ns),
                ns(spread.high_ns),
                ns(ratio),
            ]);
        }
        table.print();
    }

    fn print_totals(&self) {
        let counts = MODULES.map(|count| format!("{count} modules"));
        let mut heading = vec!["module", "batch", "called: ns per packet"];
        heading.extend(counts.iter().map(String::as_str));
        let mut table = Table::new(&heading);
        for (module, batch, way) in cases() {
            let Some(group) = self.samples.group(module, batch, way) else { continue };
            let mut cells: Vec<Cell> = vec![module.into(), batch.into(), way.name().into()];
            let totals = group.rows.iter().map(|row| Spread::of(&row.samples).median_ns);
            cells.extend(totals.map(ns));
            table.row(cells);
        }
        table.print();
    }

    fn print_lives(&self) {
        let counts = MODULES.map(|count| format!("{count} modules"));
        let mut heading = vec!["allocated, carried, freed: ns per packet", "fixed", "q1", "q3"];
        heading.extend(counts.iter().map(String::as_str));
        let mut table = Table::new(&heading);
        for lives in &self.samples.lives {
            let fixed = Spread::of(&lives.fixed());
            let mut cells: Vec<Cell> = vec![lives.load.name().into()];
            cells.extend([fixed.median_ns, fixed.low_ns, fixed.high_ns].map(ns));
            cells.extend(lives.rows.iter().map(|row| ns(Spread::of(&row.samples).median_ns)));
            table.row(cells);
        }
        table.print();
    }

    fn print_buffers(&self) {
        let mut table = Table::new(&[
            "bytes of a buffer, 3 modules",
            "ns",
            "q1",
            "q3",
            "first use ns",
            "1998: average ns",
            "first use ns",
            "then/now",
        ]);
        for buffer in &self.samples.buffers {
            let (now, first) = (Spread::of(&buffer.samples), Spread::of(&buffer.firsts));
            let row = row_of(buffer);
            let average = row.map_or(f64::NAN, |row| f64::from(row.average_us) * 1e3);
            let first_then = row.and_then(|row| row.first_us).map_or(f64::NAN, f64::from) * 1e3;
            table.row(vec![
                buffer.len.into(),
                format!("{:.0}", now.median_ns).into(),
                format!("{:.0}", now.low_ns).into(),
                format!("{:.0}", now.high_ns).into(),
                format!("{:.0}", first.median_ns).into(),
                format!("{average:.0}").into(),
                format!("{first_then:.0}").into(),
                format!("{:.0}", average / now.median_ns.max(1e-3)).into(),
            ]);
        }
        table.print();
    }

    /// Table 1, and its line beside ours.
    fn print_then(&self) {
        let mut table = Table::new(&[
            "modules",
            "1998: average ns",
            "EQ 3 ns",
            "corrected ns",
            "now, one by one, timed ns",
            "then/now",
        ]);
        for row in then::RUNS {
            let modules = f64::from(row.what);
            let now = self.total("touch", 1, Way::Timed, row.what as usize);
            let average = f64::from(row.average_us) * 1e3;
            table.row(vec![
                row.what.into(),
                format!("{average:.0}").into(),
                format!("{:.0}", then::equation_3_us(modules, 0.0) * 1e3).into(),
                format!("{:.0}", then::corrected_us(modules, 0.0, true) * 1e3).into(),
                ns(now),
                format!("{:.0}", average / now.max(1e-3)).into(),
            ]);
        }
        table.print();
    }

    fn print_notes(&self) {
        let (touch, rounds) = (TOUCHED, self.samples.rounds);
        line(format_args!(
            "\ntouch writes {touch} bytes before every packet and takes them off on the way up; \
             pass forwards.\nPackets of {LEN} bytes go down and up; the figures are for one way. \
             Medians and quartiles of {rounds} rounds.\nmonomorphised: the same modules called one \
             after the other, without a runner.\ncounted: by the runner, with its counters, which \
             are always on.\ntimed: and a reading of the clock per module and batch, {:.1} ns each \
             here.",
            Spread::of(&self.samples.meter).median_ns
        ));
        line(
            "1998: Tables 1 and 2 and EQ 3 of TIK Report 42, an idle UltraSPARC 170E; Table 2 \
             prints no unit of memory, taken\nhere as bytes. EQ 3 as printed, 9 + 0.6 M + 5 B µs; \
             its text says 0.4 per step and 0.6 more per module that\nmeasures: 9 + (0.4 + 0.6) M \
             + 5 B, which is within 1 µs of Table 1, where EQ 3 is 5 below it at 10 modules.",
        );
        line(match self.gstreamer {
            Found::NotInstalled => "GStreamer is not installed: no figures of identity.".to_owned(),
            Found::Failed(why) => format!("GStreamer was not measured: {why}"),
            Found::PerElementNs(ns) => {
                format!("GStreamer, identity: {ns:.0} ns per buffer and element, by difference.")
            }
        });
        if cfg!(debug_assertions) {
            line("This program is built without optimisation: its figures say little.");
        }
    }

    fn total(&self, module: &str, batch: usize, way: Way, modules: usize) -> f64 {
        let group = self.samples.group(module, batch, way);
        let row = group.and_then(|it| it.rows.iter().find(|row| row.modules == modules));
        row.map_or(f64::NAN, |row| Spread::of(&row.samples).median_ns)
    }

    /// For programs.
    pub fn to_json(&self, seconds: f64) -> Value {
        let gstreamer = match self.gstreamer {
            Found::NotInstalled => json!({ "installed": false }),
            Found::Failed(why) => json!({ "installed": true, "error": why }),
            Found::PerElementNs(ns) => json!({ "installed": true, "identity_ns": ns }),
        };
        json!({
            "seconds": seconds,
            "rounds": self.samples.rounds,
            "optimised": !cfg!(debug_assertions),
            "packet_bytes": LEN,
            "touched_bytes": TOUCHED,
            "clock_reading": Spread::of(&self.samples.meter).to_json(),
            "marginal": cases().map(|case| self.marginal_json(case)).collect::<Vec<_>>(),
            "fixed": self.samples.lives.iter().map(lives_json).collect::<Vec<_>>(),
            "buffers": self.samples.buffers.iter().map(buffer_json).collect::<Vec<_>>(),
            "gstreamer": gstreamer,
            "1998": then_json(),
        })
    }

    fn marginal_json(&self, (module, batch, way): (&str, usize, Way)) -> Value {
        let (spread, ratio) = self.samples.marginal(module, batch, way);
        let rows = self.samples.group(module, batch, way).map(|group| group.rows.as_slice());
        let totals = rows.unwrap_or_default().iter().map(|row| {
            json!({ "modules": row.modules, "per_packet": Spread::of(&row.samples).to_json() })
        });
        json!({
            "module": module,
            "batch": batch,
            "called": way.name(),
            "per_packet_and_module": spread.to_json(),
            "beside_monomorphised": ratio,
            "totals": totals.collect::<Vec<_>>(),
        })
    }
}

/// Module, packets of a batch, and how it is called: every line of a table.
fn cases() -> impl Iterator<Item = (&'static str, usize, Way)> {
    let pairs = KINDS.into_iter().flat_map(|kind| BATCHES.map(|batch| (kind, batch)));
    pairs.flat_map(|(kind, batch)| Way::ALL.map(|way| (kind, batch, way)))
}

fn row_of(buffer: &Buffer) -> Option<&'static then::Row> {
    then::BUFFERS.iter().find(|row| row.what as usize == buffer.len)
}

fn lives_json(lives: &Lives) -> Value {
    let totals = lives.rows.iter().map(
        |row| json!({ "modules": row.modules, "per_packet": Spread::of(&row.samples).to_json() }),
    );
    json!({
        "fed": lives.load.name(),
        "packets": if lives.load == Load::Alone { 1 } else { 32 },
        "per_packet": Spread::of(&lives.fixed()).to_json(),
        "totals": totals.collect::<Vec<_>>(),
    })
}

fn buffer_json(buffer: &Buffer) -> Value {
    json!({
        "bytes": buffer.len,
        "modules": 3,
        "now": Spread::of(&buffer.samples).to_json(),
        "first_use": Spread::of(&buffer.firsts).to_json(),
        "1998": row_of(buffer).map(row_json),
    })
}

fn row_json(row: &then::Row) -> Value {
    json!({
        "min_us": row.min_us,
        "average_us": row.average_us,
        "max_us": row.max_us,
        "standard_deviation_us": row.deviation_us,
        "first_us": row.first_us,
    })
}

fn then_json() -> Value {
    let runs = then::RUNS.iter().map(|row| {
        let modules = f64::from(row.what);
        let mut value = row_json(row);
        if let Some(map) = value.as_object_mut() {
            map.insert("modules".to_owned(), json!(row.what));
            map.insert("eq_3_us".to_owned(), json!(then::equation_3_us(modules, 0.0)));
            map.insert("corrected_us".to_owned(), json!(then::corrected_us(modules, 0.0, true)));
        }
        value
    });
    json!({
        "source": "TIK Report 42, Tables 1 and 2, EQ 3; UltraSPARC 170E",
        "table_1": runs.collect::<Vec<_>>(),
        "per_module_us": { "eq_3": 0.6, "text": 0.4 },
        "per_buffer_us": 5.0,
    })
}
