//! [`Process`]: one end, running; ended and waited for when dropped.
//!
//! Invariant: no process outlives this one: dropping kills it by its handle and waits, and the
//! words that start it hold [`DIES_WITH_PARENT`].

use super::stop::Stop;
use super::{machine, perf};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Words before a command: the kernel kills it when this process is gone, however that went. They
/// stand behind the entry into a namespace, which would undo it.
pub const DIES_WITH_PARENT: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];

/// How often a wait looks whether the run was stopped.
const LOOK: Duration = Duration::from_millis(50);

/// No more than so much of what a process complains is kept.
const COMPLAINT_LEN_MAX: u64 = 4096;

/// A report is one line; nobody prints more than this in one.
const LINE_LEN_MAX: u64 = 16 << 20;

/// So many lines wait to be read.
const LINES_MAX: usize = 1_024;

/// What a process took, as the kernel accounts it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time of it and of the children that it waited for.
    pub cpu_s: f64,
    /// How often it was taken off a processor, as it waited or as others were to run.
    pub switches: u64,
    /// The most memory that it had, as far as was looked.
    pub memory_kib: u64,
    /// System calls of all its threads and children, where they were counted.
    pub calls: Option<u64>,
}

/// A running end.
#[derive(Debug)]
pub struct Process {
    child: Child,
    lines: Receiver<String>,
    complaint: Option<JoinHandle<String>>,
    name: String,
    usage: Usage,
    stop: Stop,
    /// Where its system calls are counted.
    counts: Option<PathBuf>,
    /// Whether what counts stands between this process and the end.
    is_behind: bool,
}

impl Process {
    /// Starts `words` as [`Process::start`] does, with its system calls counted.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_counted(words: &[String], folder: &Path, stop: &Stop) -> Result<Self, String> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = folder.join(format!("calls-{}-{number}", std::process::id()));
        let mut process = Self::start_behind(perf::counted(&file), words, folder, stop)?;
        process.counts = Some(file);
        Ok(process)
    }

    /// Starts `words` as [`Process::start`] does, with samples of its stacks put into `file`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start_profiled(
        words: &[String],
        folder: &Path,
        stop: &Stop,
        file: &Path,
    ) -> Result<Self, String> {
        Self::start_behind(perf::profiled(file), words, folder, stop)
    }

    fn start_behind(
        before: Vec<String>,
        words: &[String],
        folder: &Path,
        stop: &Stop,
    ) -> Result<Self, String> {
        let dies = DIES_WITH_PARENT.into_iter().map(str::to_owned);
        let all: Vec<String> = dies.chain(before).chain(words.iter().cloned()).collect();
        let mut process = Self::start(&all, folder, stop)?;
        process.is_behind = true;
        Ok(process)
    }

    /// Starts `words`, with `folder` as `PEERS_DIR`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(words: &[String], folder: &Path, stop: &Stop) -> Result<Self, String> {
        let name = words.join(" ");
        let (first, rest) = words.split_first().ok_or("no command")?;
        let mut child = Command::new(first)
            .args(rest)
            .env("PEERS_DIR", folder)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{name}: {error}"))?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let (sender, lines) = sync_channel(LINES_MAX);
        std::thread::spawn(move || {
            let mut out = out.map(BufReader::new);
            while let Some(line) = out.as_mut().and_then(next_line) {
                // Who prints without end fills the queue, and then its pipe.
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let complaint = std::thread::spawn(move || {
            let mut text = Vec::new();
            if let Some(mut err) = err {
                let _ = err.by_ref().take(COMPLAINT_LEN_MAX).read_to_end(&mut text);
                let _ = std::io::copy(&mut err, &mut std::io::sink());
            }
            String::from_utf8_lossy(&text).into_owned()
        });
        let (complaint, usage) = (Some(complaint), Usage::default());
        Ok(Self {
            child,
            lines,
            complaint,
            name,
            usage,
            stop: stop.clone(),
            counts: None,
            is_behind: false,
        })
    }

    /// The next line that `is_meant`, within `patience`.
    ///
    /// # Errors
    /// It ended, nothing came in time, or the run was stopped.
    pub fn line(
        &mut self,
        patience: Duration,
        is_meant: impl Fn(&str) -> bool,
    ) -> Result<String, String> {
        let until = Instant::now() + patience;
        loop {
            match self.next(until)? {
                Some(line) if is_meant(&line) => return Ok(line),
                Some(_) => {}
                None => return Err(self.ended()),
            }
        }
    }

    /// Everything it says until it ends, within `patience`.
    ///
    /// # Errors
    /// It did not end in time, ended with a failure, or the run was stopped.
    pub fn all(&mut self, patience: Duration) -> Result<String, String> {
        let until = Instant::now() + patience;
        let mut text = String::new();
        while let Some(line) = self.next(until)? {
            if text.len() as u64 > LINE_LEN_MAX {
                return Err(format!("prints without end: {}", self.name));
            }
            text.push_str(&line);
            text.push('\n');
        }
        let before = children();
        let status = self.child.wait().map_err(|error| format!("{}: {error}", self.name))?;
        self.account(before);
        if status.success() { Ok(text) } else { Err(self.ended()) }
    }

    /// The next line; none when it has said everything.
    fn next(&mut self, until: Instant) -> Result<Option<String>, String> {
        loop {
            if self.stop.is_wanted() {
                return Err("stopped".to_owned());
            }
            if Instant::now() > until {
                return Err(format!("hangs: nothing came in time from {}", self.name));
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => return Ok(Some(line)),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {
                    self.usage.memory_kib = self.usage.memory_kib.max(memory_kib(self.child.id()));
                }
            }
        }
    }

    /// Asks it to end in order, if it has not ended, and says what it took.
    ///
    /// # Errors
    /// It does not end.
    pub fn end(&mut self, patience: Duration) -> Result<Usage, String> {
        let (until, before) = (Instant::now() + patience, children());
        // One that has ended by itself cannot be asked.
        let _ = self.interrupt();
        while self.next(until)?.is_some() {}
        self.child.wait().map_err(|error| format!("{}: {error}", self.name))?;
        self.account(before);
        Ok(self.usage)
    }

    /// What it took, once it has ended.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    fn account(&mut self, before: Usage) {
        let after = children();
        self.usage.cpu_s = after.cpu_s - before.cpu_s;
        self.usage.switches = after.switches - before.switches;
        let counted = self.counts.take().and_then(|file| {
            let text = std::fs::read_to_string(&file).ok();
            let _ = std::fs::remove_file(file);
            text
        });
        self.usage.calls = counted.as_deref().and_then(perf::calls_of);
    }

    /// Asks it to end in order.
    ///
    /// # Errors
    /// It is gone.
    pub fn interrupt(&mut self) -> Result<(), String> {
        if self.is_behind {
            // Who counts takes no notice: what it started is asked.
            let id = self.child.id();
            let path = format!("/proc/{id}/task/{id}/children");
            let child = std::fs::read_to_string(path).unwrap_or_default();
            machine::output("kill", &["-INT", child.trim()]);
            return Ok(());
        }
        dacapo_sys::process::interrupt(&mut self.child)
            .map_err(|error| format!("{}: {error}", self.name))
    }

    /// Why it ended, as it says itself.
    fn ended(&mut self) -> String {
        let _ = self.child.kill();
        let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        let complaint = self.complaint.take().and_then(|thread| thread.join().ok());
        let complaint = complaint.unwrap_or_default();
        let last = complaint.lines().rev().find(|line| !line.trim().is_empty());
        let name = self.name.rsplit('/').next().unwrap_or_default();
        last.map_or_else(|| format!("{status}: {name}"), |last| format!("{last} ({status})"))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A line, lossily; none at the end or when it has no end.
fn next_line(out: &mut BufReader<std::process::ChildStdout>) -> Option<String> {
    let mut bytes = Vec::new();
    let len = out.take(LINE_LEN_MAX).read_until(b'\n', &mut bytes).ok()?;
    if len == 0 || (bytes.len() as u64 == LINE_LEN_MAX && bytes.last() != Some(&b'\n')) {
        return None;
    }
    Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']).to_owned())
}

/// What all children that were waited for have taken.
fn children() -> Usage {
    let it = dacapo_sys::process::children_usage();
    Usage { cpu_s: it.cpu.as_secs_f64(), switches: it.switches, ..Usage::default() }
}

/// The most memory that a process had so far; 0 when it is gone.
fn memory_kib(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn start(script: &str) -> Process {
        let words = ["sh", "-c", script].map(str::to_owned);
        Process::start(&words, Path::new("/"), &Stop::never()).unwrap()
    }

    #[test]
    fn what_a_process_says_and_takes_is_known_when_it_has_ended() {
        let mut it =
            start("echo ready; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo '{}'");
        assert_eq!(it.line(SOON, |line| line == "ready").as_deref(), Ok("ready"));
        assert_eq!(it.all(SOON).as_deref(), Ok("{}\n"));
        assert!(it.usage().cpu_s > 0.0, "{:?}", it.usage());
    }

    #[test]
    fn one_that_crashes_says_why_itself_or_how_it_ended() {
        let error = start("echo no such thing >&2; exit 3").all(SOON).unwrap_err();
        assert!(error.contains("no such thing") && error.contains("exit status: 3"), "{error}");
        let error = start("kill -SEGV $$").line(SOON, |_| true).unwrap_err();
        assert!(error.contains("signal: 11"), "{error}");
    }

    #[test]
    fn one_that_hangs_is_given_up_and_is_no_more() {
        let mut it = start("echo ready; exec sleep 600");
        let id = it.child.id();
        let error = it.line(Duration::from_millis(200), |line| line == "never").unwrap_err();
        assert!(error.starts_with("hangs"), "{error}");
        drop(it);
        assert!(!Path::new(&format!("/proc/{id}")).exists());
    }

    #[test]
    fn system_calls_are_counted_of_children_too_and_of_one_that_is_asked_to_end() {
        if !perf::counts_calls() {
            return dacapo_base::skip("who builds may not count system calls with perf");
        }
        let count = |script: &str, is_asked: bool| {
            let words = ["sh", "-c", script].map(str::to_owned);
            let folder = std::env::temp_dir();
            let mut it = Process::start_counted(&words, &folder, &Stop::never()).unwrap();
            if is_asked {
                it.line(SOON, |line| line == "ready").unwrap();
            }
            it.end(SOON).unwrap().calls.unwrap()
        };
        let few = count("trap 'exit 0' INT; echo ready; while :; do sleep 0.01; done", true);
        let many = count("head -c 100000 /dev/zero | dd bs=1 of=/dev/null 2>/dev/null", false);
        assert!(few > 10 && many > 200_000 && many < 300_000, "{few} {many}");
    }

    #[test]
    fn one_that_prints_rubbish_without_end_is_given_up() {
        let error = start("exec yes rubbish").all(Duration::from_millis(500)).unwrap_err();
        assert!(error.contains("without end") || error.starts_with("hangs"), "{error}");
        let error = start("exec cat /dev/zero").line(SOON, |_| true).unwrap_err();
        assert!(!error.is_empty());
    }
}
