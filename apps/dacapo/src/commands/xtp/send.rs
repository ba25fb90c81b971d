//! `dacapo xtp send`: files as one reliable stream, and the comparison of their hashes.
//!
//! ```text
//!   open (FIRST with the first unit) -> per file: begin data … end -> receipt: equal?
//! ```
//!
//! What it is not: congestion control; --rate is what there is.
//!
//! Invariant: what cannot be read is said before anything is sent.

use super::below::{self, End};
use super::receipt::{RECEIPT_LEN, Receipt};
use crate::cli::XtpSendArgs;
use crate::commands::transfer::figures::{bytes_words, rate_words};
use crate::exit::{Exit, Failure};
use crate::progress::Progress;
use dacapo::transfer::{DATA_LEN, Digest, Header, Kind, hex};
use dacapo_base::Time;
use dacapo_xtp::wire::{Limits, Service};
use dacapo_xtp::{ContextId, Message, Mode, Open, Read as XtpRead};
use dacapo_xtp_net::CallError;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const WHAT: &str = "xtp send";
/// A peer that says nothing for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(120);

/// Runs the command.
pub fn run(args: &XtpSendArgs) -> Result<Exit, Failure> {
    let files: Vec<(PathBuf, File)> =
        args.files.iter().map(|path| open_file(path)).collect::<Result<_, _>>()?;
    let peer = below::resolve(WHAT, &args.below, &args.host)?;
    let end = End::open(WHAT, &args.below, below::on_the_way_to(peer))?;
    // The burst is what goes in 10 ms: as even as timers of this host allow.
    let limits = args.rate.map_or_else(Limits::default, |rate| Limits {
        out_rate: rate,
        out_burst: (rate / 100).max(2_000),
        ..Limits::default()
    });
    let mode = Mode { fast_report: true, limits, ..Mode::default() };
    let open = Open { peer, ends: None, service: Service::Stream, mode };
    let open = end.with_ends(open, args.below.port);
    let mut sender = Sender {
        args,
        end,
        progress: Progress::new(args.below.json),
        bytes: 0,
        began: Instant::now(),
    };
    let id = sender.end.host.open(&open).map_err(|error| sender.end.failure(WHAT, &error))?;
    let sent = sender.send_all(id, files);
    if sent.is_err() {
        // However it ended, the peer is not left waiting.
        let _ = sender.end.host.release(id);
    }
    sender.end.check_capture()?;
    sent
}

fn open_file(path: &Path) -> Result<(PathBuf, File), Failure> {
    let failed = |text: String| Failure::run_time(WHAT, format!("{}: {text}", path.display()));
    let file = File::open(path).map_err(|error| failed(error.to_string()))?;
    let about = file.metadata().map_err(|error| failed(error.to_string()))?;
    if !about.is_file() {
        return Err(failed("is no file that can be sent; name files, not folders".to_owned()));
    }
    Ok((path.to_owned(), file))
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
    fn send_all(&mut self, id: ContextId, files: Vec<(PathBuf, File)>) -> Result<Exit, Failure> {
        let mut sent = Vec::new();
        let last = files.len().saturating_sub(1);
        for (number, (path, file)) in files.into_iter().enumerate() {
            sent.push(self.send_file(id, (number, number == last), path, file)?);
        }
        self.call(|this, _| this.end.host.finish(id))?;
        let mut is_equal = true;
        for file in &sent {
            let receipt = self.receipt(id)?;
            is_equal &= self.compare(file, receipt);
        }
        self.call(|this, until| this.end.host.close(id, until))?;
        let took = self.began.elapsed();
        self.end.linger();
        self.tell(took);
        Ok(if is_equal { Exit::Success } else { Exit::Mismatch })
    }

    /// Does something that waits; a failure of it ends the command.
    fn call<T>(
        &mut self,
        work: impl FnOnce(&mut Self, Time) -> Result<T, CallError>,
    ) -> Result<T, Failure> {
        let until = self.end.host.after(SILENCE_MAX);
        let what = format!("{WHAT} to {}", self.args.host);
        work(self, until).map_err(|error| {
            self.progress.clear();
            self.end.failure(&what, &error)
        })
    }

    fn send_file(
        &mut self,
        id: ContextId,
        (number, is_last): (usize, bool),
        path: PathBuf,
        mut file: File,
    ) -> Result<Sent, Failure> {
        let number = u16::try_from(number).unwrap_or(u16::MAX);
        let unit = |this: &mut Self, kind, rest: &[u8]| {
            let is_end = matches!(kind, Kind::End { .. });
            let header = Header { kind, is_last: is_last && is_end, file: number };
            let unit = [&header.emit()[..], rest].concat();
            this.call(|this, until| this.end.host.write(id, &Message::whole(&unit), until))
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
        Ok(Sent { path, bytes: offset, digest })
    }

    /// The next receipt; `None` when what came is none.
    fn receipt(&mut self, id: ContextId) -> Result<Option<Receipt>, Failure> {
        let (mut bytes, mut len) = ([0; RECEIPT_LEN], 0);
        loop {
            let read = self.call(|this, until| {
                this.end.host.read(id, bytes.get_mut(len..).unwrap_or_default(), until)
            })?;
            match read {
                XtpRead::Data { len: more, is_end, .. } => {
                    len += more;
                    if is_end {
                        return Ok(Receipt::parse(bytes.get(..len).unwrap_or_default()));
                    }
                    if len == RECEIPT_LEN {
                        return Ok(None);
                    }
                }
                _ => return Ok(None),
            }
        }
    }

    fn compare(&self, file: &Sent, receipt: Option<Receipt>) -> bool {
        let saved = receipt.map(|receipt| (receipt.bytes, receipt.digest));
        let is_equal = saved == Some((file.bytes, file.digest));
        let (path, digest) = (file.path.display().to_string(), hex(&file.digest));
        let event = json!({
            "event": "sent",
            "path": path,
            "bytes": file.bytes,
            "sha256": digest,
            "sha256_received": receipt.map(|receipt| hex(&receipt.digest)),
            "equal": is_equal,
        });
        let words = if is_equal { "equal" } else { "DIFFERENT at the receiver" };
        let text = format!("sent {path}  {} bytes  SHA-256 {digest}  {words}", file.bytes);
        below::tell(self.args.below.json, &event, &text);
        is_equal
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
