//! [`Process`]: a station in a process of its own, `dacapo-lab-end`, to be stopped and killed.
//!
//! ```text
//!   dacapo-lab-end serve ADDRESS    says: listening A, active, lost, restored MS, units N,
//!   dacapo-lab-end join ADDRESS     account …, over …; the end of its input ends it
//! ```
//!
//! Invariant: a process is killed with its handle.

use super::station::{Course, LONG, Role, Station};
use dacapo_security::Identity;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The name of the program.
const PROGRAM: &str = "dacapo-lab-end";

/// What a process has said, line by line, and when that was read.
type Lines = Arc<Mutex<Vec<(Instant, String)>>>;

/// A station in a process of its own.
pub struct Process {
    child: Child,
    lines: Lines,
}

/// Where the program is: beside this one, or one folder above, where tests are.
fn program() -> Result<PathBuf, String> {
    let here = std::env::current_exe().map_err(|error| error.to_string())?;
    let folders = here.ancestors().skip(1).take(2);
    let mut found = folders.map(|folder| folder.join(PROGRAM)).filter(|path| path.is_file());
    let missing = || format!("no {PROGRAM} beside {}: cargo build -p dacapo-lab", here.display());
    found.next().ok_or_else(missing)
}

impl Process {
    /// Begins one: `serve` or `join`, and the address.
    ///
    /// # Errors
    /// The program is not there or cannot be started.
    pub fn begin(role: &str, at: SocketAddr) -> Result<Self, String> {
        let mut command = Command::new(program()?);
        command.args([role, &at.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{PROGRAM}: {error}"))?;
        let lines = Lines::default();
        let said = Arc::clone(&lines);
        if let Some(out) = child.stdout.take() {
            std::thread::spawn(move || {
                for line in BufReader::new(out).lines().map_while(Result::ok) {
                    let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
                    said.push((Instant::now(), line));
                }
            });
        }
        Ok(Self { child, lines })
    }

    /// Sends a signal by its name, such as `STOP`.
    ///
    /// # Errors
    /// There is no `kill`, or the process is gone.
    pub fn signal(&self, name: &str) -> Result<(), String> {
        let (signal, id) = (format!("-{name}"), self.child.id().to_string());
        match Command::new("kill").args([signal, id]).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("kill -{name}: {status}")),
            Err(error) => Err(format!("kill: {error}")),
        }
    }

    /// Closes its input, which makes it finish.
    pub fn finish(&mut self) {
        drop(self.child.stdin.take());
    }

    /// How many lines it has said.
    #[must_use]
    pub fn said(&self) -> usize {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Waits for a line that begins with a word, from the line `from` on; when it was read, and
    /// what follows the word.
    ///
    /// # Errors
    /// It does not come within [`LONG`].
    pub fn line(&mut self, word: &str, from: usize) -> Result<(Instant, String), String> {
        let begun = Instant::now();
        loop {
            let is_gone = self.child.try_wait().is_ok_and(|status| status.is_some());
            let told = {
                let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
                let mut of = lines.iter().skip(from);
                let found = of.find_map(|(at, line)| Some((*at, line.strip_prefix(word)?.trim())));
                if let Some((at, rest)) = found {
                    return Ok((at, rest.to_owned()));
                }
                let last = lines.iter().rev().take(20).map(|(_, line)| line.as_str());
                last.collect::<Vec<_>>().join(" | ")
            };
            // What it said last may still be on its way.
            let most = if is_gone { Duration::from_secs(2) } else { LONG };
            if begun.elapsed() > most {
                return Err(format!("never said \"{word}\", but, the last first: {told}"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program: `dacapo-lab-end serve|join ADDRESS`.
#[must_use]
pub fn run_program(args: &[String]) -> ExitCode {
    let [role, at] = args else {
        let _ = writeln!(io::stderr(), "usage: {PROGRAM} serve|join ADDRESS");
        return ExitCode::from(2);
    };
    let role = at.parse().ok().and_then(|at| match role.as_str() {
        "serve" => Some(Role::Serve(at)),
        "join" => Some(Role::Join(at)),
        _ => None,
    });
    let (Some(role), Ok(who)) = (role, Identity::generate()) else {
        let _ =
            writeln!(io::stderr(), "{PROGRAM}: serve or join, and an address such as 127.0.0.1:0");
        return ExitCode::from(2);
    };
    match tell(&Station::begin(role, Course::ticking(), &who, None)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "{PROGRAM}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Says what a station sees, until it is over and, for one that serves, the input has ended.
fn tell(station: &Station) -> Result<(), String> {
    let is_over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&is_over);
    std::thread::spawn(move || {
        let _ = io::stdin().read_to_end(&mut Vec::new());
        ended.store(true, Relaxed);
    });
    let mut told = Told::default();
    loop {
        let seen = station.seen();
        let said = told.news(&seen, station.arrivals().units());
        if !said.is_empty() {
            let mut out = io::stdout().lock();
            let written = out.write_all(said.as_bytes()).and_then(|()| out.flush());
            written.map_err(|error| error.to_string())?;
        }
        if is_over.load(Relaxed) && seen.set_up.is_some() {
            station.finish();
        }
        if seen.is_gone {
            return seen.failed.map_or(Ok(()), Err);
        }
        if is_over.load(Relaxed) && seen.listening.is_some() {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What was said already.
#[derive(Default)]
struct Told {
    counts: [usize; 6],
    units: u64,
}

impl Told {
    fn news(&mut self, seen: &super::station::Seen, units: u64) -> String {
        let accounts = seen.accounts.iter().map(|(it, hash)| {
            let (sent, delivered, lost, unknown) = (it.sent, it.delivered, it.lost, it.unknown);
            format!("account {sent} {delivered} {lost} {unknown} {} {hash:?}", it.closes())
        });
        let over = seen.over.iter().map(|(_, error)| match error {
            None => "over usual".to_owned(),
            Some(error) => format!("over {:?}", error.code),
        });
        let all: [Vec<String>; 6] = [
            seen.listening.iter().map(|at| format!("listening {at}")).collect(),
            seen.active.iter().map(|_| "active".to_owned()).collect(),
            seen.lost.iter().map(|_| "lost".to_owned()).collect(),
            seen.restored
                .iter()
                .map(|(_, after)| format!("restored {}", after.as_millis()))
                .collect(),
            accounts.collect(),
            over.collect(),
        ];
        let mut text = String::new();
        for (lines, count) in all.iter().zip(&mut self.counts) {
            for line in lines.iter().skip(*count) {
                text.push_str(line);
                text.push('\n');
            }
            *count = lines.len();
        }
        if units != self.units {
            text.push_str(&format!("units {units}\n"));
            self.units = units;
        }
        text
    }
}
