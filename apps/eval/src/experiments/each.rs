//! [`Each`]: measurements of this host with a row for each of several things: a command for each,
//! and where in what it prints the figures are.

use super::own::{self, Place};
use crate::experiment::{Experiment, Row, Sample, Site, Spec, figures};
use crate::rig::Rig;
use crate::run::machine;
use std::time::Duration;

/// A command for each row, and its figures.
pub struct Each {
    /// Its name.
    pub id: &'static str,
    /// What it is.
    pub what: &'static str,
    /// The rows: their names, and what they are.
    pub rows: fn() -> Vec<(&'static str, String)>,
    /// The command of a row.
    pub command: fn(&Rig, row: &str) -> Vec<String>,
    /// How long a command takes at most.
    pub patience_s: u64,
    /// How long a row takes, for who wants to know how long a run takes.
    pub seconds: f64,
    /// How often, with nothing else on the machine and beside its load.
    pub rounds: [u32; 2],
    /// It counts by valgrind.
    pub is_counted: bool,
    /// Name, heading, more is better, and where it is.
    pub figures: &'static [(&'static str, &'static str, bool, &'static str)],
}

impl Experiment for Each {
    fn id(&self) -> &'static str {
        self.id
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn spec(&self) -> Spec {
        let row = |(name, what): (&str, String)| Row {
            name: name.to_owned(),
            what,
            group: self.id.to_owned(),
            ..Row::default()
        };
        let heads: Vec<_> = self.figures.iter().map(|it| (it.0, it.1, it.2, false)).collect();
        let [rounds, loaded_rounds] = self.rounds;
        Spec {
            what: self.what.to_owned(),
            rows: (self.rows)().into_iter().map(row).collect(),
            figures: figures(&heads, &[self.id]),
            controls: Vec::new(),
            goals: Vec::new(),
            rounds,
            loaded_rounds,
            seconds: self.seconds,
        }
    }

    fn site(&self) -> Site {
        Site::Host
    }

    fn missing(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        let lacks = self.is_counted && machine::version("valgrind", &["--version"]).is_none();
        lacks.then(|| "valgrind is not there: scripts/setup.sh test installs it".to_owned())
    }

    fn version(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        self.is_counted.then(|| machine::version("valgrind", &["--version"])).flatten()
    }

    fn round(&self, row: &Row, rig: &mut Rig) -> Result<Sample, String> {
        let places: Vec<Place> = self.figures.iter().map(|it| (it.0, it.3)).collect();
        let command = (self.command)(rig, &row.name);
        own::measure(&command, &places, Duration::from_secs(self.patience_s), rig)
    }
}
