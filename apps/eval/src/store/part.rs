//! [`Part`]: a run that is not over: each sample is on the disk before the next begins, so that the
//! same command goes on where it was after a signal, a full disk or a reboot.
//!
//! Invariant: a line that was not written whole is taken off and measured again.

use super::run::{Entry, Header, read_header};
use crate::experiment::Load;
use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A run in the making.
pub struct Part {
    folder: PathBuf,
    file: File,
    /// What was measured so far.
    pub entries: Vec<Entry>,
    /// How much of it was there already.
    pub resumed: usize,
}

impl Part {
    /// Goes on with what lies in `folder`, or begins there. What was begun at another commit or
    /// with other options is no part of this run, and goes.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn open(folder: &Path, header: &Header) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        let before = read_header(&folder.join("run.json")).ok();
        if before.is_none_or(|before| !is_same(&before, header)) {
            fs::create_dir_all(folder).map_err(failed)?;
            fs::write(folder.join("samples.jsonl"), "").map_err(failed)?;
            let text = serde_json::to_string(header).map_err(|error| error.to_string())?;
            fs::write(folder.join("run.json"), text).map_err(failed)?;
        }
        let path = folder.join("samples.jsonl");
        let text = fs::read_to_string(&path).map_err(failed)?;
        let (entries, len) = whole_lines(&text);
        let mut file = OpenOptions::new().write(true).open(&path).map_err(failed)?;
        file.set_len(len as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let resumed = entries.len();
        Ok(Self { folder: folder.to_path_buf(), file, entries, resumed })
    }

    /// Whether this row of this round is done.
    pub fn has(&self, round: u32, load: Load, row: &str) -> bool {
        self.entries.iter().any(|it| it.round == round && it.load == load && it.row == row)
    }

    /// Keeps one more.
    ///
    /// # Errors
    /// It cannot be written; what was written before is whole.
    pub fn push(&mut self, entry: Entry) -> Result<(), String> {
        let mut line = serde_json::to_string(&entry).map_err(|error| error.to_string())?;
        line.push('\n');
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        written.map_err(|error| {
            format!("{}: {error}; what was measured before is kept", self.folder.display())
        })?;
        self.entries.push(entry);
        Ok(())
    }

    /// It is over, and kept elsewhere.
    pub fn remove(self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether what was begun is the same run.
fn is_same(before: &Header, now: &Header) -> bool {
    let of = |it: &Header| (it.commit.clone(), it.is_clean, it.spec.clone(), it.place.clone());
    of(before) == of(now)
}

/// The entries of whole lines, and how long these are.
fn whole_lines(text: &str) -> (Vec<Entry>, usize) {
    let (mut entries, mut len) = (Vec::new(), 0);
    for line in text.split_inclusive('\n').take_while(|line| line.ends_with('\n')) {
        let Ok(entry) = serde_json::from_str(line) else { break };
        entries.push(entry);
        len += line.len();
    }
    (entries, len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Sample;

    fn entry(round: u32) -> Entry {
        Entry::of(round, Load::Quiet, "gso", Ok(Sample::default().with("gbit_per_s", 40.0)))
    }

    #[test]
    fn a_run_goes_on_behind_its_last_whole_line() {
        let folder = std::env::temp_dir().join(format!("dacapo-eval-part-{}", std::process::id()));
        let header = Header { commit: "abc".to_owned(), ..Header::default() };
        let mut part = Part::open(&folder, &header).unwrap();
        part.push(entry(1)).unwrap();
        part.push(entry(2)).unwrap();
        drop(part);
        // The machine went down while the third was written.
        let path = folder.join("samples.jsonl");
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"round\":3,\"load\":\"qui");
        fs::write(&path, text).unwrap();
        let mut part = Part::open(&folder, &header).unwrap();
        assert_eq!(part.resumed, 2);
        assert!(part.has(2, Load::Quiet, "gso") && !part.has(3, Load::Quiet, "gso"));
        part.push(entry(3)).unwrap();
        drop(part);
        assert_eq!(Part::open(&folder, &header).unwrap().resumed, 3);
        // Another commit is another run.
        let other = Header { commit: "abd".to_owned(), ..Header::default() };
        let part = Part::open(&folder, &other).unwrap();
        assert_eq!(part.resumed, 0);
        part.remove();
        assert!(!folder.exists());
    }
}
