//! Files to a reliable group: begun when enough members have joined, and what each of them has.
//!
//! ```text
//!   open_group -> FIRST until --members have joined -> files -> Left, per member: complete, or why
//! ```
//!
//! Each compares the hash that stands at the end of a file with its own, and says so itself.

use super::{Checked, Sender, Sent, WHAT};
use crate::commands::xtp::below;
use crate::exit::{Exit, Failure};
use dacapo::transfer::hex;
use dacapo::xtp_net::CallError;
use dacapo::xtp_net::{ContextId, End, Event, GroupPolicy, Leaving, Member, Open};
use serde_json::json;
use std::time::Duration;

/// The longest that is waited at once.
const SLICE: Duration = Duration::from_millis(500);

/// What has become of the members of a group.
#[derive(Default)]
pub struct Members {
    joined: u64,
    complete: u64,
    end: Option<End>,
}

impl Sender<'_> {
    /// Sends all files to a group.
    pub fn send_to_group(&mut self, open: &Open, files: &[Checked]) -> Result<Exit, Failure> {
        let count = self.args.members.unwrap_or(1) as usize;
        let members_max = GroupPolicy::default().members_max.max(count);
        let policy = GroupPolicy { members_first: count, members_max, ..GroupPolicy::default() };
        let peer = self.end.host.address(open.peer).map_err(CallError::Address);
        let peer = self.done(peer)?;
        let (now, open) = (self.end.host.now(), Open { peer, ..*open });
        let opened = self.end.host.engine().open_group(now, &open, &policy);
        let id = self.done(opened.map_err(CallError::Open))?;
        let mut members = Members::default();
        let sent = self.send_to_members(&mut members, (id, count), files);
        // However it ended, the members are not left waiting.
        let _ = self.end.host.release(id);
        self.note_members(&mut members);
        let files = sent.map_err(|failure| self.explain(&members, count, failure))?;
        let took = self.began.elapsed();
        self.end.linger();
        files.iter().for_each(|file| self.tell_file(file));
        self.tell(took);
        Ok(if members.complete == members.joined { Exit::Success } else { Exit::Mismatch })
    }

    fn send_to_members(
        &mut self,
        members: &mut Members,
        (id, count): (ContextId, usize),
        files: &[Checked],
    ) -> Result<Vec<Sent>, Failure> {
        self.wait_until(members, |members| members.joined >= count as u64)?;
        let mut sent = Vec::new();
        for (file, rest) in files.iter().zip((0..files.len()).rev()) {
            sent.push(self.send_file(id, rest == 0, file)?);
            self.note_members(members);
        }
        let finished = self.end.host.finish(id);
        self.done(finished)?;
        self.wait_until(members, |members| members.end == Some(End::Complete))?;
        Ok(sent)
    }

    /// Waits for something about the members. Whom the others wait for too long is dropped, and who
    /// waits for members in vain is told by the engine; so it ends.
    fn wait_until(
        &mut self,
        members: &mut Members,
        is_so: impl Fn(&Members) -> bool,
    ) -> Result<(), Failure> {
        loop {
            self.note_members(members);
            if is_so(members) {
                return Ok(());
            }
            if let Some(end) = members.end {
                return self.done(Err(CallError::Ended(end, None)));
            }
            let turned = self.end.host.turn(SLICE).map_err(CallError::Host);
            self.done(turned)?;
            if let Some(token) = self.end.host.take_alarm() {
                return self.done(Err(CallError::Interrupted(token)));
            }
            if self.progress.is_due() {
                let Members { joined, complete, .. } = members;
                let text = format!("members that have joined: {joined}, have all: {complete}");
                self.progress.show(&text);
            }
        }
    }

    fn tell_file(&mut self, file: &Sent) {
        let (path, digest) = (file.path.display().to_string(), hex(&file.digest));
        let event = json!({ "event": "sent", "path": path, "bytes": file.bytes, "sha256": digest });
        let text = format!("sent {path}  {} bytes  SHA-256 {digest}", file.bytes);
        self.progress.clear();
        below::tell(self.args.below.json, &event, &text);
    }

    fn note_members(&mut self, members: &mut Members) {
        while let Some(event) = self.end.host.engine().poll_event() {
            match event {
                Event::Joined(_, member) => {
                    members.joined += 1;
                    self.tell_joined(&member);
                }
                Event::Left(_, member, why) => {
                    members.complete += u64::from(why == Leaving::Complete);
                    self.tell_left(&member, why);
                }
                Event::Ended(_, end) => members.end = Some(end),
                _ => {}
            }
        }
    }

    fn tell_joined(&mut self, member: &Member) {
        let (number, address) = (member.id.0, member.address.to_string());
        let event = json!({ "event": "joined", "member": number, "address": address });
        self.progress.clear();
        let text = format!("member {number} at {address} has joined");
        below::tell(self.args.below.json, &event, &text);
    }

    fn tell_left(&mut self, member: &Member, why: Leaving) {
        let (number, address) = (member.id.0, member.address.to_string());
        let received = member.received();
        let event = json!({
            "event": "left",
            "member": number,
            "address": address,
            "bytes_acknowledged": received,
            "complete": why == Leaving::Complete,
            "why": why.to_string(),
        });
        self.progress.clear();
        let text = format!("member {number} at {address} {why}: {received} bytes acknowledged");
        below::tell(self.args.below.json, &event, &text);
    }

    /// Who waited for members in vain is told how many came.
    fn explain(&self, members: &Members, count: usize, failure: Failure) -> Failure {
        let joined = members.joined;
        if joined >= count as u64 || !matches!(failure.exit, Exit::Unreachable | Exit::Failure) {
            return failure;
        }
        let port = self.args.below.port;
        let text = format!(
            "{joined} of {count} members have joined; do the others run `dacapo xtp listen --group \
             {} --port {port}`, and do routers and switches between pass it on?",
            self.args.host
        );
        Failure::new(Exit::Unreachable, &format!("{WHAT} to {}", self.args.host), text)
    }
}
