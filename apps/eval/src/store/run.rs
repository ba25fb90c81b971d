//! [`Run`]: a run as it is kept, read and written.

use super::histogram::Histogram;
use crate::experiment::{Figures, Load, Sample, Spec};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

/// Of the two files. A later one adds keys.
pub const VERSION: u32 = 1;

/// The samples of a run that is over.
pub const SAMPLES: &str = "samples.jsonl.gz";

/// More than this is no run: 2 MiB are kept, compressed.
const SAMPLES_LEN_MAX: u64 = 256 << 20;

/// What ran, where, and with what.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`VERSION`].
    pub version: u32,
    /// The experiment.
    pub id: String,
    /// The day on which it began, UTC.
    pub date: String,
    /// The commit of the tree.
    pub commit: String,
    /// How many commits there were.
    pub commit_count: u64,
    /// Whether the tree had no changes, when it began and when it was over.
    pub is_clean: bool,
    /// Whether it is all of the experiment: every row, the controls among them, and as many rounds
    /// as it asks for. Documents are made of no other.
    #[serde(default)]
    pub is_whole: bool,
    /// The command, without the folders of the machine.
    pub command: String,
    /// What was asked.
    pub spec: Spec,
    /// Rows that could not run, and why.
    pub missing: BTreeMap<String, String>,
    /// The versions of what rows ran.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Where the ends were.
    pub place: String,
    /// The load averages when it began.
    #[serde(default)]
    pub load_average: String,
    /// The machine.
    pub machine: Value,
    /// A digest of the samples as they are kept.
    pub samples_sha256: String,
    /// What is to be known of a run that another program made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// One run of one row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// From 1.
    pub round: u32,
    /// What else ran.
    pub load: Load,
    /// The row.
    pub row: String,
    /// Its figures; none when it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<Figures>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Values of which there are many.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub series: BTreeMap<String, Value>,
    /// The commands that ran.
    pub commands: Vec<String>,
    /// What they said.
    pub reports: Value,
    /// The load averages when it began.
    pub load_average: String,
}

impl Entry {
    /// Of what came of a row.
    pub fn of(round: u32, load: Load, row: &str, outcome: Result<Sample, String>) -> Self {
        let (sample, failure) = match outcome {
            Ok(sample) => (Some(sample), None),
            Err(failure) => (None, Some(failure)),
        };
        let figures = sample.as_ref().map(|sample| sample.figures.clone());
        let sample = sample.unwrap_or_default();
        let series = sample.series.iter().map(|(name, it)| (name.clone(), it.to_json())).collect();
        let (commands, reports) = (sample.commands, sample.reports);
        let (row, load_average) = (row.to_owned(), String::new());
        Self { round, load, row, figures, failure, series, commands, reports, load_average }
    }

    /// A series, when it was kept.
    pub fn histogram(&self, name: &str) -> Option<Histogram> {
        Histogram::from_json(self.series.get(name)?)
    }
}

/// A run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Run {
    /// What ran.
    pub header: Header,
    /// Every run of a row.
    pub entries: Vec<Entry>,
}

impl Run {
    /// Reads what is in `folder`.
    ///
    /// # Errors
    /// The file that is missing or damaged, and how.
    pub fn read(folder: &Path) -> Result<Self, String> {
        let header = read_header(&folder.join("run.json"))?;
        let path = folder.join(SAMPLES);
        let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        if digest(&bytes) != header.samples_sha256 {
            let text = "is not what was measured: its digest is another than run.json says";
            return Err(format!("{}: {text}", path.display()));
        }
        let lines = BufReader::new(GzDecoder::new(bytes.as_slice()).take(SAMPLES_LEN_MAX)).lines();
        let mut entries = Vec::new();
        for (at, line) in lines.enumerate() {
            let entry = line
                .map_err(|error| error.to_string())
                .and_then(|line| serde_json::from_str(&line).map_err(|error| error.to_string()));
            entries.push(entry.map_err(|error| format!("{}:{}: {error}", path.display(), at + 1))?);
        }
        Ok(Self { header, entries })
    }

    /// Writes it to `folder`, which it makes.
    ///
    /// # Errors
    /// What cannot be written.
    pub fn write(&mut self, folder: &Path) -> Result<(), String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let mut packed = GzEncoder::new(Vec::new(), Compression::best());
        for entry in &self.entries {
            let line = serde_json::to_string(entry).map_err(|error| error.to_string())?;
            packed.write_all(line.as_bytes()).map_err(failed)?;
            packed.write_all(b"\n").map_err(failed)?;
        }
        let bytes = packed.finish().map_err(failed)?;
        self.header.version = VERSION;
        self.header.samples_sha256 = digest(&bytes);
        fs::create_dir_all(folder).map_err(failed)?;
        fs::write(folder.join(SAMPLES), bytes).map_err(failed)?;
        let header =
            serde_json::to_string_pretty(&self.header).map_err(|error| error.to_string())?;
        let mut file = File::create(folder.join("run.json")).map_err(failed)?;
        writeln!(file, "{header}").and_then(|()| file.sync_all()).map_err(failed)
    }

    /// The first word of a command that is a place on the machine where it ran, which is nobody
    /// else's business.
    pub fn place_of_the_machine(&self) -> Option<&str> {
        let entries = self.entries.iter().flat_map(|entry| &entry.commands);
        let commands = std::iter::once(&self.header.command).chain(entries);
        commands.flat_map(|command| command.split(' ')).find(|word| word.starts_with('/'))
    }

    /// What of the entries is in one set of rounds.
    pub fn of(&self, load: Load) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.load == load)
    }
}

/// Reads what ran.
///
/// # Errors
/// The file is missing or damaged.
pub fn read_header(path: &Path) -> Result<Header, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let header: Header =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    if header.version > VERSION {
        let Header { version, .. } = header;
        let text = format!("version {version}, and this program reads up to {VERSION}: build anew");
        return Err(format!("{}: {text}", path.display()));
    }
    Ok(header)
}

/// SHA-256, in hexadecimal digits.
pub fn digest(bytes: &[u8]) -> String {
    use sha2::Digest;
    sha2::Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> Run {
        let sample = Sample::default().with("p50_us", 12.5);
        let sample = Sample {
            series: [("rtt_us".to_owned(), Histogram::of(&[1.0, 2.0]))].into(),
            commands: vec!["peer ping".to_owned()],
            ..sample
        };
        let ok = Entry::of(1, Load::Quiet, "udp-64", Ok(sample));
        let failed = Entry::of(1, Load::Loaded, "zmq-64", Err("it crashed".to_owned()));
        let header = Header { id: "network".to_owned(), is_clean: true, ..Header::default() };
        Run { header, entries: vec![ok, failed] }
    }

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("dacapo-eval-{name}-{}", std::process::id()))
    }

    #[test]
    fn a_run_is_read_as_it_was_written() {
        let folder = scratch("run");
        let mut run = run();
        run.write(&folder).unwrap();
        let read = Run::read(&folder).unwrap();
        assert_eq!(read, run);
        assert_eq!(read.entries[0].figures.as_ref().unwrap().get("p50_us").copied(), Some(12.5));
        assert_eq!(read.entries[0].histogram("rtt_us").unwrap().count(), 2);
        assert_eq!(read.of(Load::Loaded).count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_damaged_file_is_named_with_what_is_wrong() {
        let folder = scratch("damaged");
        run().write(&folder).unwrap();
        let mut bytes = fs::read(folder.join(SAMPLES)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(folder.join(SAMPLES), bytes).unwrap();
        let error = Run::read(&folder).unwrap_err();
        assert!(error.contains("samples.jsonl.gz: is not what was measured"), "{error}");
        fs::write(folder.join("run.json"), "{\"version\":").unwrap();
        assert!(Run::read(&folder).unwrap_err().contains("run.json: EOF"), "cut short");
        fs::remove_file(folder.join("run.json")).unwrap();
        assert!(Run::read(&folder).unwrap_err().contains("No such file"), "gone");
        fs::remove_dir_all(folder).unwrap();
    }
}
