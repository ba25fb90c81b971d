//! [`Receipts`]: what the receiver says of each file, in their order, and the comparison.

use super::{Sender, Sent};
use crate::commands::xtp::below;
use crate::commands::xtp::receipt::{RECEIPT_LEN, Receipt};
use crate::exit::Failure;
use dacapo::transfer::hex;
use dacapo::xtp_net::{ContextId, Read};
use serde_json::json;
use std::collections::VecDeque;

/// Files that were sent and of which nothing has been heard, and what has come of a receipt.
pub struct Receipts {
    waiting: VecDeque<Sent>,
    bytes: [u8; RECEIPT_LEN],
    len: usize,
    /// What came was no receipt, or there will be no more.
    is_broken: bool,
    is_different: bool,
}

impl Receipts {
    /// None are waited for.
    pub fn new() -> Self {
        let (waiting, bytes) = (VecDeque::new(), [0; RECEIPT_LEN]);
        Self { waiting, bytes, len: 0, is_broken: false, is_different: false }
    }

    /// A file was sent.
    pub fn push(&mut self, sent: Sent) {
        self.waiting.push_back(sent);
    }

    /// Whether the receiver has said of every file that was sent that it is equal.
    pub fn are_equal(&self) -> bool {
        self.waiting.is_empty() && !self.is_different
    }

    /// Compares what has come; waits for nothing.
    pub fn take_those_that_came(&mut self, sender: &mut Sender<'_>, id: ContextId) {
        while !self.is_broken && !self.waiting.is_empty() {
            let now = sender.end.host.now();
            let room = self.bytes.get_mut(self.len..).unwrap_or_default();
            match sender.end.host.engine().read(now, id, room) {
                Ok(Read::Nothing) | Err(_) => return,
                Ok(read) => self.take(sender, read),
            }
        }
    }

    /// Waits for all that lack.
    ///
    /// # Errors
    /// The association ended.
    pub fn take_all(&mut self, sender: &mut Sender<'_>, id: ContextId) -> Result<(), Failure> {
        while !self.waiting.is_empty() {
            if self.is_broken {
                self.compare(sender, None);
                continue;
            }
            let room = self.bytes.get_mut(self.len..).unwrap_or_default();
            let read = sender.call(|host, until| host.read(id, room, until))?;
            self.take(sender, read);
        }
        Ok(())
    }

    fn take(&mut self, sender: &mut Sender<'_>, read: Read) {
        let Read::Data { len, is_end, .. } = read else {
            self.is_broken = true;
            return;
        };
        self.len += len;
        if is_end {
            let receipt = Receipt::parse(self.bytes.get(..self.len).unwrap_or_default());
            self.len = 0;
            self.compare(sender, receipt);
        } else if self.len == RECEIPT_LEN {
            self.is_broken = true;
        }
    }

    fn compare(&mut self, sender: &mut Sender<'_>, receipt: Option<Receipt>) {
        let Some(file) = self.waiting.pop_front() else { return };
        let saved = receipt.map(|receipt| (receipt.bytes, receipt.digest));
        let is_equal = saved == Some((file.bytes, file.digest));
        self.is_different |= !is_equal;
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
        sender.progress.clear();
        below::tell(sender.args.below.json, &event, &text);
    }
}
