//! `dacapo xtp capture`: packets of XTP that an interface carries, into a file.
//!
//! ```text
//!   Sniffer (tap) -> packets -> CaptureWriter -> FILE or standard output
//!   until a signal, --count or --for
//! ```
//!
//! Invariant: what the kernel dropped because this program was too slow is said.

use crate::cli::XtpCaptureArgs;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::progress::Progress;
use dacapo::xtp_net::{CaptureWriter, LinkType, Sniffer};
use dacapo_sys::clock;
use dacapo_sys::poll::{Interest, Poller};
use dacapo_sys::signal::{Signal, Signals};
use serde_json::json;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

const WHAT: &str = "xtp capture";
/// The longest that is waited at once.
const SLICE: Duration = Duration::from_millis(500);

/// Runs the command.
pub fn run(args: &XtpCaptureArgs) -> Result<Exit, Failure> {
    let failed = |error: io::Error| Failure::run_time(WHAT, error);
    let mut signals = Signals::catch(&Signal::ALL).map_err(failed)?;
    let sniffer = Sniffer::open(&args.interface, args.udp_port)
        .map_err(|error| Failure::run_time(WHAT, error))?;
    let is_output = args.file.as_os_str() == "-";
    let into: Box<dyn Write> = if is_output {
        Box::new(io::stdout())
    } else {
        let cannot = |error| Failure::run_time(WHAT, format!("{}: {error}", args.file.display()));
        Box::new(BufWriter::new(File::create(&args.file).map_err(cannot)?))
    };
    let writer = CaptureWriter::new(into, LinkType::Ethernet).map_err(failed)?;
    let mut capture = Capture { args, sniffer, writer, count: 0, is_output };
    let event = json!({ "event": "capturing", "interface": args.interface });
    capture.tell(&event, &format!("capturing at {}", args.interface));
    let signal = capture.watch(&mut signals).map_err(failed)?;
    capture.writer.flush().map_err(failed)?;
    let dropped = capture.sniffer.take_drops().unwrap_or(0);
    let event = json!({ "event": "totals", "packets": capture.count, "dropped": dropped });
    let text = format!("{} packets, {dropped} frames dropped by the kernel", capture.count);
    capture.tell(&event, &text);
    Ok(signal.map_or(Exit::Success, Exit::Signal))
}

struct Capture<'a> {
    args: &'a XtpCaptureArgs,
    sniffer: Sniffer,
    writer: CaptureWriter<Box<dyn Write>>,
    count: u64,
    is_output: bool,
}

impl Capture<'_> {
    /// Words go where the packets do not.
    fn tell(&self, event: &serde_json::Value, text: &str) {
        let text: &dyn std::fmt::Display = if self.args.json { event } else { &text };
        if self.is_output { output::note(text) } else { output::line(text) }
    }

    fn is_over(&self) -> bool {
        self.args.count.is_some_and(|most| self.count >= most)
    }

    fn watch(&mut self, signals: &mut Signals) -> io::Result<Option<Signal>> {
        let end = self.args.duration.map(|duration| Instant::now() + duration);
        let mut poller = Poller::new()?;
        poller.add(signals.as_fd(), 0, Interest::Read)?;
        poller.add(self.sniffer.as_fd(), 1, Interest::Read)?;
        let mut progress = Progress::new(self.args.json || self.is_output);
        let mut events = Vec::new();
        while !self.is_over() {
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            let wait = progress.due_in(SLICE).min(left.unwrap_or(SLICE));
            poller.wait(Some(wait), &mut events)?;
            if let Some(signal) = signals.poll() {
                return Ok(Some(signal));
            }
            self.drain()?;
            if progress.is_due() {
                progress.show(&format!("{} packets", self.count));
            }
        }
        Ok(None)
    }

    /// Takes what has come.
    fn drain(&mut self) -> io::Result<()> {
        let at_ns = clock::wall_ns();
        let most = self.args.count.unwrap_or(u64::MAX);
        let (writer, count) = (&mut self.writer, &mut self.count);
        let each = |packet: &[u8]| {
            if *count >= most {
                return Ok(());
            }
            *count += 1;
            writer.packet(at_ns, packet)
        };
        let mut each = each;
        // A signal is looked at after so many frames at the latest.
        for _ in 0..1_024 {
            if self.sniffer.next(&mut each)?.is_none() {
                break;
            }
        }
        if self.is_output {
            self.writer.flush()?;
        }
        Ok(())
    }
}
