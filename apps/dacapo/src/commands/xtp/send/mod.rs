//! `dacapo xtp send`: files as one reliable stream, and the comparison of their hashes.
//!
//! ```text
//!   a host    open (FIRST with the first unit) -> per file: begin data … end -> receipt: equal?
//!   a group   group.rs
//! ```
//!
//! Invariants: what cannot be read is said before anything is sent; one file is open at a time.

mod group;
mod receipts;

use super::below::{self, End};
use super::patience::{self, patiently};
use crate::cli::XtpSendArgs;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use crate::words::{bytes_words, rate_words};
use dacapo::Time;
use dacapo::transfer::{DATA_LEN, Digest, Header, Kind};
use dacapo::xtp_net::Service;
use dacapo::xtp_net::{CallError, Host};
use dacapo::xtp_net::{ContextId, Message, Mode, Open};
use dacapo_term::xtp::args::Over;
use receipts::Receipts;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const WHAT: &str = "xtp send";
/// A peer that says nothing for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// The most files, as of any transfer: their numbers have 16 bits.
const FILES_MAX: usize = u16::MAX as usize;

/// Runs the command.
pub fn run(args: &XtpSendArgs) -> Result<Exit, Failure> {
    let files = check_all(&args.files)?;
    let peer = below::resolve(WHAT, &args.below, &args.host)?;
    let is_group = peer.ip().is_multicast();
    if args.members.is_some() && !is_group {
        let text = format!("--members is for groups, and {} is none", args.host);
        return Err(Failure::run_time(WHAT, text));
    }
    if is_group && args.below.over == Over::Tcp {
        let text =
            format!("{}: connections have no groups; use --over udp, ip or ethernet", args.host);
        return Err(Failure::run_time(WHAT, text));
    }
    let end = End::open(WHAT, &args.below, below::on_the_way_to(peer))?;
    let limits = below::limits_at(args.rate);
    let mode = Mode { fast_report: true, limits, ..Mode::default() };
    let open = Open { peer, ends: None, service: Service::Stream, mode };
    let open = end.with_ends(open, args.below.port);
    let progress = Progress::new(args.below.json);
    let mut sender = Sender { args, end, progress, bytes: 0, began: Instant::now() };
    let sent = if is_group {
        sender.send_to_group(&open, &files)
    } else {
        sender.send_to_host(&open, &files)
    };
    sender.end.check_capture()?;
    sent
}

/// A file that can be read.
struct Checked {
    path: PathBuf,
    number: u16,
}

fn check_all(paths: &[PathBuf]) -> Result<Vec<Checked>, Failure> {
    if paths.len() > FILES_MAX {
        let text = format!("{} files; send at most {FILES_MAX} at a time", paths.len());
        return Err(Failure::run_time(WHAT, text));
    }
    let checked = (0..).zip(paths).map(|(number, path)| {
        open_file(path)?;
        Ok(Checked { path: path.clone(), number })
    });
    checked.collect()
}

fn open_file(path: &Path) -> Result<File, Failure> {
    let failed = |text: String| Failure::run_time(WHAT, format!("{}: {text}", path.display()));
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let about = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !about.is_file() {
        return Err(failed("is no file that can be sent; name files, not folders".to_owned()));
    }
    Ok(file)
}

/// What was read of a file.
struct Sent {
    path: PathBuf,
    bytes: u64,
    digest: Digest,
}

struct Sender<'a> {
    args: &'a XtpSendArgs,
    end: End,
    progress: Progress,
    bytes: u64,
    began: Instant,
}

impl Sender<'_> {
    fn send_to_host(&mut self, open: &Open, files: &[Checked]) -> Result<Exit, Failure> {
        let id = self.end.host.open(open).map_err(|error| self.end.failure(WHAT, &error))?;
        let sent = self.send_all(id, files);
        if sent.is_err() {
            // However it ended, the peer is not left waiting.
            let _ = self.end.host.release(id);
        }
        sent
    }

    fn send_all(&mut self, id: ContextId, files: &[Checked]) -> Result<Exit, Failure> {
        let mut receipts = Receipts::new();
        for (file, rest) in files.iter().zip((0..files.len()).rev()) {
            receipts.push(self.send_file(id, rest == 0, file)?);
            receipts.take_those_that_came(self, id);
        }
        let finished = self.end.host.finish(id);
        self.done(finished)?;
        receipts.take_all(self, id)?;
        // Everything has been read there; only the ends are to be acknowledged.
        let until = self.end.host.after(SILENCE_MAX);
        let closed = self.end.host.close(id, until);
        self.done(closed)?;
        let took = self.began.elapsed();
        self.end.linger();
        self.tell(took);
        Ok(if receipts.are_equal() { Exit::Success } else { Exit::Mismatch })
    }

    /// Does something that waits, as long as packets come.
    fn call<T>(
        &mut self,
        work: impl FnMut(&mut Host, Time) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let called = patiently(&mut self.end.host, SILENCE_MAX, work);
        self.done(called)
    }

    /// What was to be done; a failure of it ends the command.
    fn done<T>(&mut self, result: Result<T, CallError>) -> Result<T, Failure> {
        let what = format!("{WHAT} to {}", self.args.host);
        result.map_err(|error| {
            self.progress.clear();
            self.end.failure(&what, &error)
        })
    }

    fn send_file(
        &mut self,
        id: ContextId,
        is_last: bool,
        &Checked { ref path, number }: &Checked,
    ) -> Result<Sent, Failure> {
        let mut file = open_file(path)?;
        let unit = |this: &mut Self, kind, rest: &[u8]| {
            let is_end = matches!(kind, Kind::End { .. });
            let header = Header { kind, is_last: is_last && is_end, file: number };
            let unit = [&header.emit()[..], rest].concat();
            let written =
                patience::write(&mut this.end.host, id, &Message::whole(&unit), SILENCE_MAX);
            this.done(written)
        };
        let size = file.metadata().ok().map(|about| about.len());
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        unit(self, Kind::Begin { size }, name.unwrap_or_default().as_bytes())?;
        let (mut hash, mut offset) = (Sha256::new(), 0);
        let mut buffer = vec![0; DATA_LEN];
        loop {
            let read = file
                .read(&mut buffer)
                .map_err(|error| Failure::run_time(WHAT, format!("{}: {error}", path.display())))?;
            if read == 0 {
                break;
            }
            let bytes = buffer.get(..read).unwrap_or_default();
            hash.update(bytes);
            unit(self, Kind::Data { offset }, bytes)?;
            offset += read as u64;
            self.bytes += read as u64;
            self.show();
        }
        let digest: Digest = hash.finalize().into();
        unit(self, Kind::End { size: offset }, &digest)?;
        Ok(Sent { path: path.clone(), bytes: offset, digest })
    }

    fn show(&mut self) {
        if self.progress.is_due() {
            let rate = self.bytes as f64 * 8.0 / self.began.elapsed().as_secs_f64().max(1e-9);
            let text = format!("{} sent  {}", bytes_words(self.bytes), rate_words(rate));
            self.progress.show(&text);
        }
    }

    fn tell(&mut self, took: Duration) {
        self.progress.clear();
        let seconds = took.as_secs_f64().max(1e-9);
        let rate = self.bytes as f64 * 8.0 / seconds;
        let event = json!({
            "event": "totals",
            "bytes": self.bytes,
            "seconds": seconds,
            "gbit_per_s": rate / 1e9,
            "packets": below::packets_json(&self.end.host),
        });
        let text = format!(
            "{} in {seconds:.2} s, {}; {}",
            bytes_words(self.bytes),
            rate_words(rate),
            below::packets_words(&self.end.host)
        );
        below::tell(self.args.below.json, &event, &text);
    }
}
