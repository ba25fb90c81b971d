//! `instructions`: those of fixed work, two cores back to back in virtual time. The ratchet of
//! `make test` compares them with the last that were accepted; they are the same in every run.

use super::own;
use crate::experiment::{Experiment, Row, Sample, Site, Spec, figures};
use crate::peers::words;
use crate::rig::Rig;
use crate::run::machine;
use std::time::Duration;

/// The experiment.
pub struct Instructions;

/// What is counted, as `cargo xtask ratchet` calls it, and what it is.
const WORKS: [(&str, &str); 4] = [
    ("udp-large", "bulk over udp, units of 60 KiB"),
    ("udp-small", "bulk over udp, units of 1,400 B"),
    ("tcp", "bulk over tcp"),
    ("control", "sessions opened, changed and closed"),
];

/// The program that counts may have to be built first.
const PATIENCE: Duration = Duration::from_secs(600);

impl Experiment for Instructions {
    fn id(&self) -> &'static str {
        "instructions"
    }

    fn what(&self) -> &'static str {
        "instructions of fixed work in the core, counted by callgrind"
    }

    fn spec(&self) -> Spec {
        let row = |(name, what): &(&str, &str)| Row {
            name: (*name).to_owned(),
            what: (*what).to_owned(),
            group: self.id().to_owned(),
            ..Row::default()
        };
        Spec {
            what: self.what().to_owned(),
            rows: WORKS.iter().map(row).collect(),
            figures: figures(&[("instructions", "instructions", false, false)], &[self.id()]),
            rounds: 1,
            seconds: 25.0,
            ..Spec::default()
        }
    }

    fn site(&self) -> Site {
        Site::Host
    }

    fn missing(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        let lacks = machine::version("valgrind", &["--version"]).is_none();
        lacks.then(|| "valgrind is not there: scripts/setup.sh test installs it".to_owned())
    }

    fn version(&self, _row: &Row, _rig: &Rig) -> Option<String> {
        machine::version("valgrind", &["--version"])
    }

    fn round(&self, row: &Row, rig: &mut Rig) -> Result<Sample, String> {
        let command = words(["cargo", "xtask", "ratchet", "--json", &*row.name]);
        own::measure(&command, &[("instructions", "instructions")], PATIENCE, rig)
    }
}
