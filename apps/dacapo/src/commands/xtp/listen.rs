//! `dacapo xtp listen`: takes associations, saves files, answers transactions.
//!
//! ```text
//!   Host::turn -> events: Incoming -> Served     Readable -> pump     Ended -> told, released
//!   until a signal, or with --once the end of the first association with files
//! ```
//!
//! Invariant: however it ends, peers are told (END), and the totals are printed.

use super::below::{self, End};
use super::served::{Folder, Served};
use crate::cli::XtpListenArgs;
use crate::exit::{Exit, Failure};
use crate::folder;
use dacapo::xtp_net::Group;
use dacapo::xtp_net::Service;
use dacapo::xtp_net::{ContextId, Event, Listen};
use dacapo_sys::signal::Signal;
use dacapo_term::xtp::args::Over;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

const WHAT: &str = "xtp listen";
/// The longest that is waited at once.
const SLICE: Duration = Duration::from_millis(500);
/// Room for what is read at a time.
const BUFFER_LEN: usize = 64 << 10;

/// Runs the command.
pub fn run(args: &XtpListenArgs) -> Result<Exit, Failure> {
    folder::make(&args.out).map_err(|text| Failure::run_time(WHAT, text))?;
    let end = End::open(WHAT, &args.below, below::loopback())?;
    let folder = Folder { dir: args.out.clone(), force: args.force };
    let mut listener = Listener {
        args,
        end,
        folder,
        served: HashMap::new(),
        buffer: vec![0; BUFFER_LEN],
        totals: Totals::default(),
        is_over: false,
    };
    listener.listen()?;
    let served = listener.serve();
    // Who failed or was told to end waits for nobody.
    listener.close(!matches!(served, Ok(None)));
    let signal = served?;
    listener.end.check_capture()?;
    if let Some(signal) = signal {
        return Ok(Exit::Signal(signal));
    }
    Ok(if listener.totals.faulty > 0 { Exit::Mismatch } else { Exit::Success })
}

#[derive(Default)]
struct Totals {
    associations: u64,
    pings: u64,
    files: u64,
    faulty: u64,
}

struct Listener<'a> {
    args: &'a XtpListenArgs,
    end: End,
    folder: Folder,
    served: HashMap<ContextId, Served>,
    buffer: Vec<u8>,
    totals: Totals,
    is_over: bool,
}

impl Listener<'_> {
    fn listen(&mut self) -> Result<(), Failure> {
        let port = self.args.below.port;
        let listened = self.end.host.listen(Listen::on(port));
        listened.map_err(|error| Failure::run_time(WHAT, error))?;
        self.join()?;
        let (local, over) = (self.end.host.local(), self.args.below.over);
        let mac = dacapo::xtp_net::eui64::MacAddr::of(&local);
        let address = match (over, mac) {
            (Over::Ip, _) => local.ip().to_string(),
            (Over::Ethernet, Some(mac)) => mac.to_string(),
            _ => local.to_string(),
        };
        let over = dacapo_term::args::word(over);
        let event = json!({ "event": "listening", "over": over, "address": address, "port": port });
        let text = format!("listening over {over} at {address}, XTP port {port}");
        below::tell(self.args.below.json, &event, &text);
        Ok(())
    }

    /// Joins the group that was named.
    fn join(&mut self) -> Result<(), Failure> {
        let Some(group) = self.args.group else { return Ok(()) };
        let address = group.addr(self.end.host.local().port());
        let interface = below::interface(WHAT, &self.args.below)?;
        let joined = self.end.host.join(Group { address, interface });
        joined.map_err(|error| Failure::run_time(WHAT, error))
    }

    fn serve(&mut self) -> Result<Option<Signal>, Failure> {
        while !self.is_over {
            self.end.host.turn(SLICE).map_err(|error| Failure::run_time(WHAT, error))?;
            if let Some(signal) = self.end.host.take_alarm().and_then(|_| self.end.signal()) {
                return Ok(Some(signal));
            }
            while let Some(event) = self.end.host.engine().poll_event() {
                self.handle_event(event);
            }
        }
        Ok(None)
    }

    fn handle_event(&mut self, event: Event) {
        match event {
            Event::Incoming { id, .. } => {
                let Ok(status) = self.end.host.engine().status(id) else { return };
                self.totals.associations += 1;
                self.served.insert(id, Served::new(status.peer, status.service));
                self.pump(id);
            }
            Event::Readable(id) | Event::Writable(id) => self.pump(id),
            Event::Ended(id, how) => {
                // What has come can still be read.
                self.pump(id);
                let now = self.end.host.now();
                let _ = self.end.host.engine().release(now, id);
                if let Some(mut served) = self.served.remove(&id) {
                    served.end(how);
                    self.tell_end(&served);
                }
            }
            _ => {}
        }
    }

    fn pump(&mut self, id: ContextId) {
        let now = self.end.host.now();
        if let Some(served) = self.served.get_mut(&id) {
            let engine = self.end.host.engine();
            served.pump(now, (engine, id), &self.folder, &mut self.buffer);
        }
    }

    fn tell_end(&mut self, served: &Served) {
        match served.service {
            Service::Transaction if served.error.is_none() => self.totals.pings += 1,
            Service::Stream | Service::ReliableMulticast => {
                let faulty = served.files.iter().filter(|(_, file)| file.fault.is_some()).count();
                let is_faulty = faulty > 0 || served.error.is_some();
                self.totals.files += served.files.len() as u64;
                self.totals.faulty += u64::from(is_faulty);
                let (event, text) = received(served);
                below::tell(self.args.below.json, &event, &text);
                self.is_over |= self.args.once;
            }
            _ => {}
        }
    }

    /// Gives up what is not over, and lets the peers know.
    fn close(&mut self, is_hurried: bool) {
        let ids: Vec<ContextId> = self.served.keys().copied().collect();
        for id in ids {
            // Its END leaves with the release.
            let _ = self.end.host.release(id);
            if let Some(mut served) = self.served.remove(&id) {
                served.end(dacapo::xtp_net::End::Abandoned);
                self.tell_end(&served);
            }
        }
        // What is to be said still goes, and is in the sums.
        let _ = self.end.host.turn(Duration::ZERO);
        if !is_hurried {
            self.end.linger();
        }
        let Totals { associations, pings, files, faulty } = self.totals;
        let event = json!({
            "event": "totals",
            "associations": associations,
            "pings": pings,
            "files": files,
            "faulty": faulty,
            "packets": below::packets_json(&self.end.host),
        });
        let packets = below::packets_words(&self.end.host);
        let text = format!(
            "associations: {associations}, files: {files}, senders with a fault: {faulty}, pings: \
             {pings}; {packets}"
        );
        below::tell(self.args.below.json, &event, &text);
    }
}

/// What became of an association with files.
fn received(served: &Served) -> (Value, String) {
    let mut lines = Vec::new();
    let files: Vec<Value> = served
        .files
        .iter()
        .map(|(name, file)| {
            let path = file.path.as_ref().map(|path| path.display().to_string());
            let digest = dacapo::transfer::hex(&file.digest);
            let place = path.clone().unwrap_or_else(|| name.clone());
            let fault = file.fault.as_ref().map(|text| format!("  {text}")).unwrap_or_default();
            lines.push(format!("received {place}  {} bytes  SHA-256 {digest}{fault}", file.bytes));
            json!({
                "name": name,
                "path": path,
                "bytes": file.bytes,
                "sha256": digest,
                "fault": file.fault,
            })
        })
        .collect();
    lines.extend(served.error.as_ref().map(|text| format!("from {}: {text}", served.peer)));
    let event = json!({
        "event": "received",
        "peer": served.peer.to_string(),
        "files": files,
        "error": served.error,
    });
    (event, lines.join("\n"))
}
