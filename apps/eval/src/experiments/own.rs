//! Measurements of this host alone: commands that print JSON, and where in it the figures are.

use crate::experiment::{Experiment, Goal, Row, Sample, Site, Spec, figures};
use crate::peers::words;
use crate::rig::{Rig, shown};
use crate::run::machine;
use serde_json::Value;
use std::time::Duration;

/// What is measured.
pub enum Of {
    /// One row: a command of this program.
    One(&'static [&'static str]),
    /// Rows, by their names and what they are, and the command of each.
    Each {
        /// The rows.
        rows: fn() -> Vec<(String, String)>,
        /// The command of a row.
        command: fn(&Rig, row: &str) -> Vec<String>,
    },
}

/// What figures are taken by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The clock; system calls are counted beside it.
    Clock,
    /// What valgrind counts: it is the same in every round.
    Valgrind,
    /// What happens in virtual time: that is, too.
    Seeds,
}

/// Commands, and their figures.
pub struct Own {
    /// Its name, and its row's where it has one.
    pub id: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The commands.
    pub of: Of,
    /// How long a command takes at most.
    pub patience_s: u64,
    /// How long a command measures, for who wants to know how long a run takes.
    pub seconds: f64,
    /// How often, with nothing else on the machine and beside its load.
    pub rounds: [u32; 2],
    /// What its figures are taken by.
    pub by: By,
    /// Name, heading, more is better, and where it is ([`Place`]).
    pub figures: &'static [(&'static str, &'static str, bool, &'static str)],
    /// Row, figure, what it is, at least, bound.
    pub goals: &'static [(&'static str, &'static str, &'static str, bool, f64)],
}

/// What every one of them is counted that is measured by the clock.
const CALLS: (&str, &str, bool, bool) = ("calls", "system calls", false, false);

impl Own {
    fn rows(&self) -> Vec<(String, String)> {
        match &self.of {
            Of::One(words) => {
                vec![(self.id.to_owned(), format!("dacapo-eval {}", words.join(" ")))]
            }
            Of::Each { rows, .. } => rows(),
        }
    }

    fn command(&self, rig: &Rig, row: &str) -> Vec<String> {
        match &self.of {
            Of::One(all) => command(rig, words(all.iter().copied())),
            Of::Each { command, .. } => command(rig, row),
        }
    }
}

impl Experiment for Own {
    fn id(&self) -> &'static str {
        self.id
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn site(&self) -> Site {
        Site::Host
    }

    fn spec(&self) -> Spec {
        let row = |(name, what): (String, String)| Row {
            name,
            what,
            group: self.id.to_owned(),
            ..Row::default()
        };
        let goal = |&(row, figure, what, is_least, bound): &(&str, &str, &str, bool, f64)| Goal {
            row: row.to_owned(),
            figure: figure.to_owned(),
            what: what.to_owned(),
            is_absolute: true,
            is_least,
            bound,
        };
        let mut heads: Vec<_> = self.figures.iter().map(|it| (it.0, it.1, it.2, false)).collect();
        heads.extend((self.by == By::Clock).then_some(CALLS));
        let [rounds, loaded_rounds] = self.rounds;
        Spec {
            what: self.what.to_owned(),
            rows: self.rows().into_iter().map(row).collect(),
            figures: figures(&heads, &[self.id]),
            controls: Vec::new(),
            goals: self.goals.iter().map(goal).collect(),
            rounds,
            loaded_rounds,
            seconds: self.seconds,
        }
    }

    fn missing(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        let lacks =
            self.by == By::Valgrind && machine::version("valgrind", &["--version"]).is_none();
        lacks.then(|| "valgrind is not there: scripts/setup.sh test installs it".to_owned())
    }

    fn version(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        (self.by == By::Valgrind).then(|| machine::version("valgrind", &["--version"])).flatten()
    }

    fn round(&self, row: &Row, rig: &mut Rig) -> Result<Sample, String> {
        let places: Vec<Place> = self.figures.iter().map(|it| (it.0, it.3)).collect();
        let command = self.command(rig, &row.name);
        measure(&command, &places, Duration::from_secs(self.patience_s), rig)
    }
}

/// A figure's name, and where it is in a report: keys from the top, `[key=value …]` for the first
/// of a list that has these; `A - B` and `A / B` of two such places.
pub type Place = (&'static str, &'static str);

/// A command of this program.
pub fn command(rig: &Rig, rest: Vec<String>) -> Vec<String> {
    [vec![rig.own.to_string_lossy().into_owned()], rest].concat()
}

/// Runs a command, and takes figures of what it prints.
///
/// # Errors
/// It crashed, hung or printed rubbish, or a figure is not there.
pub fn measure(
    command: &[String],
    places: &[Place],
    patience: Duration,
    rig: &Rig,
) -> Result<Sample, String> {
    let (said, usage) = rig.alone(command, patience)?;
    let mut sample = Sample::default().with("cpu_s", usage.cpu_s);
    sample.figures.extend(usage.calls.map(|calls| ("calls".to_owned(), calls as f64)));
    for (name, path) in places {
        let value = number(&said, path).filter(|value| value.is_finite());
        sample = sample.with(name, value.ok_or_else(|| format!("there is no {path}"))?);
    }
    (sample.commands, sample.reports) = (vec![shown(command)], said);
    Ok(sample)
}

/// The number at this place of a report, as [`Place`] says.
pub fn number(said: &Value, path: &str) -> Option<f64> {
    let of = |path: &str| at(said, path).and_then(Value::as_f64);
    match (path.split_once(" - "), path.split_once(" / ")) {
        (Some((a, b)), _) => Some(of(a)? - of(b)?),
        (_, Some((a, b))) => Some(of(a)? / of(b)?),
        (None, None) => of(path),
    }
}

/// What is at this place of a report.
fn at<'a>(mut value: &'a Value, path: &str) -> Option<&'a Value> {
    for step in path.split_inclusive(['.', ']']) {
        let step = step.trim_start_matches('.').trim_end_matches(['.', ']']);
        let (key, wanted) = step.split_once('[').unwrap_or((step, ""));
        if !key.is_empty() {
            value = value.get(key)?;
        }
        if step.contains('[') {
            let has = |it: &&Value| wanted.split_whitespace().all(|pair| is_in(it, pair));
            value = value.as_array()?.iter().find(has)?;
        }
    }
    Some(value)
}

fn is_in(value: &Value, pair: &str) -> bool {
    let Some((key, wanted)) = pair.split_once('=') else { return false };
    let text = value.get(key).map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    // A place has no spaces in it.
    text.is_some_and(|text| text.replace(' ', "_") == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_are_found_by_keys_and_by_what_an_entry_has() {
        let said = json!({ "median": { "send": { "a": 1.5 } },
            "rows": [{ "m": "x", "n": 1, "ns": 7 },
                { "m": "x", "n": 32, "ns": 8, "in": { "b": 9 } }] });
        let number = |path: &str| number(&said, path);
        assert_eq!(number("median.send.a"), Some(1.5));
        assert_eq!(number("rows[m=x n=32].ns"), Some(8.0));
        assert_eq!(number("rows[m=x n=32].in.b"), Some(9.0));
        assert_eq!((number("rows[].ns"), number("rows[m=y].ns")), (Some(7.0), None));
        assert_eq!(number("median.none"), None);
        assert_eq!(number("rows[m=x n=32].ns - rows[m=x n=1].ns"), Some(1.0));
        assert_eq!(number("rows[m=x n=32].ns / median.send.a"), Some(8.0 / 1.5));
        assert_eq!(number("rows[m=x n=32].ns - median.none"), None);
    }
}
