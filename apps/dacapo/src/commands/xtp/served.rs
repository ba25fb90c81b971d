//! [`Served`]: what a listener does with one association.
//!
//! ```text
//!   transaction   request, at most 64 KiB  -> the same bytes back
//!   stream        units: begin data … end  -> file in a folder -> receipt back, per file
//!   of a group    the same, and nothing goes back
//!   others        read and forgotten
//! ```
//!
//! Invariants: at most one unit or request is kept of an association, and what is said of at most
//! [`FILES_MAX`] files; a peer that sends what is none of these is let go; what came of a file is
//! never thrown away.

use super::receipt::Receipt;
use dacapo::Time;
use dacapo::transfer::{Finished, HEAD_LEN, Header, Incoming, Kind, UNIT_LEN_MAX, safe_name};
use dacapo::xtp_net::Service;
use dacapo::xtp_net::{ContextId, Engine, Message, Read};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The longest request that is given back.
pub const ECHO_LEN_MAX: usize = 64 << 10;

/// The most files of an association, as of any transfer.
const FILES_MAX: usize = u16::MAX as usize;

/// Where files go.
#[derive(Clone, Debug)]
pub struct Folder {
    /// The folder.
    pub dir: PathBuf,
    /// Whether files that are there are written over.
    pub force: bool,
}

/// One association of a listener.
pub struct Served {
    /// Who it is.
    pub peer: SocketAddr,
    /// What it is for.
    pub service: Service,
    /// Files that are over, with the name that each was given.
    pub files: Vec<(String, Finished)>,
    /// Why it was let go.
    pub error: Option<String>,
    message: Vec<u8>,
    file: Option<Incoming>,
    /// The peer sends no more, and neither does this end.
    is_done: bool,
}

impl Served {
    /// A new one.
    pub fn new(peer: SocketAddr, service: Service) -> Self {
        Self {
            peer,
            service,
            files: Vec::new(),
            error: None,
            message: Vec::new(),
            file: None,
            is_done: false,
        }
    }

    /// Reads what is there and does what it says; `buffer` is room for that.
    pub fn pump(
        &mut self,
        now: Time,
        (engine, id): (&mut Engine, ContextId),
        folder: &Folder,
        buffer: &mut [u8],
    ) {
        while !self.is_done {
            // Each time something is taken, or there is nothing now.
            let read = engine.read(now, id, buffer);
            let done = match read {
                Ok(Read::Data { len, is_end, .. }) => {
                    let bytes = buffer.get(..len).unwrap_or_default();
                    self.take(bytes, is_end, folder).map(|answer| (answer, false))
                }
                Ok(Read::Hole { len }) => Err(format!("{len} bytes are lost")),
                Ok(Read::Finished) => Ok((None, true)),
                Ok(Read::Nothing) | Err(_) => return,
            };
            match done {
                Ok((answer, is_over)) => self.answer(now, (engine, id), answer, is_over),
                Err(text) => self.let_go(now, (engine, id), text),
            }
        }
    }

    /// What is to be said to bytes that came.
    fn take(
        &mut self,
        bytes: &[u8],
        is_end: bool,
        folder: &Folder,
    ) -> Result<Option<Vec<u8>>, String> {
        let most = match self.service {
            Service::Transaction => ECHO_LEN_MAX,
            Service::Stream | Service::ReliableMulticast => UNIT_LEN_MAX,
            _ => return Ok(None),
        };
        if self.message.len() + bytes.len() > most {
            return Err(format!("a message is longer than {most} bytes"));
        }
        self.message.extend_from_slice(bytes);
        if !is_end {
            return Ok(None);
        }
        let message = std::mem::take(&mut self.message);
        if self.service == Service::Transaction {
            return Ok(Some(message));
        }
        let receipt = self.take_unit(&message, folder)?;
        let receipt = receipt.filter(|_| self.service == Service::Stream);
        Ok(receipt.map(|it| it.emit().to_vec()))
    }

    fn take_unit(&mut self, unit: &[u8], folder: &Folder) -> Result<Option<Receipt>, String> {
        let header = Header::parse(unit).map_err(|_| "it does not send files".to_owned())?;
        let rest = unit.get(HEAD_LEN..).unwrap_or_default();
        let out_of_order = || "units of a file out of their order".to_owned();
        match (header.kind, &mut self.file) {
            (Kind::Begin { .. }, None) if self.files.len() >= FILES_MAX => {
                Err(format!("more files than a transfer can have, which is {FILES_MAX}"))
            }
            (Kind::Begin { .. }, None) => {
                let name = safe_name(&String::from_utf8_lossy(rest));
                self.file = Some(Incoming::create(&folder.dir, &name, folder.force)?);
                Ok(None)
            }
            (Kind::Data { offset }, Some(file)) => {
                file.write(offset, rest.len() as u64, std::iter::once(rest))?;
                Ok(None)
            }
            (Kind::End { size }, Some(file)) => {
                let digest = rest.try_into().map_err(|_| out_of_order())?;
                file.end = Some((size, digest));
                self.finish_file()
            }
            _ => Err(out_of_order()),
        }
    }

    fn finish_file(&mut self) -> Result<Option<Receipt>, String> {
        let Some(file) = self.file.take() else { return Ok(None) };
        let name = file.name.clone();
        let finished = file.finish()?;
        let receipt = Receipt { bytes: finished.bytes, digest: finished.digest };
        self.files.push((name, finished));
        Ok(Some(receipt))
    }

    fn answer(
        &mut self,
        now: Time,
        (engine, id): (&mut Engine, ContextId),
        answer: Option<Vec<u8>>,
        is_over: bool,
    ) {
        let len = answer.as_ref().map_or(0, Vec::len);
        let written = answer.map(|answer| engine.write(now, id, &Message::whole(&answer)));
        match written {
            // What an answer needs has room, unless the peer does not read.
            Some(Ok(taken)) if taken < len => {
                self.let_go(now, (engine, id), "it does not read its answers".to_owned());
            }
            Some(Err(error)) => self.let_go(now, (engine, id), error.to_string()),
            _ => {}
        }
        // The response of a transaction is the end of what this end sends.
        let is_over_here = is_over && !self.service.is_to_group();
        if is_over_here || (self.service == Service::Transaction && len > 0) {
            let _ = engine.finish(now, id);
        }
        self.is_done |= is_over;
    }

    fn let_go(&mut self, now: Time, (engine, id): (&mut Engine, ContextId), text: String) {
        self.error = Some(text);
        self.is_done = true;
        // It may be over already.
        let _ = engine.abort(now, id);
    }

    /// The association is over: keeps what came of a file that is not whole.
    pub fn end(&mut self, how: dacapo::xtp_net::End) {
        if how != dacapo::xtp_net::End::Complete {
            self.error.get_or_insert_with(|| how.to_string());
        }
        if let Err(text) = self.finish_file() {
            self.error.get_or_insert(text);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

    use super::*;

    #[test]
    fn a_peer_may_send_as_many_files_as_a_transfer_has_and_no_more() {
        let peer = SocketAddr::from(([192, 0, 2, 1], 4_040));
        let mut served = Served::new(peer, Service::Stream);
        let finished =
            || Finished { path: None, bytes: 0, missing: 0, digest: [0; 32], fault: None };
        served.files = (0..FILES_MAX).map(|_| ("a".to_owned(), finished())).collect();
        let kind = Kind::Begin { size: None };
        let begin = Header { kind, is_last: false, file: 0 }.emit();
        let folder = Folder { dir: PathBuf::from("/nowhere/at/all"), force: false };
        let begun = |served: &mut Served| served.take(&begin, true, &folder).unwrap_err();
        assert!(begun(&mut served).contains("more files than a transfer can have"));
        served.files.pop();
        assert!(begun(&mut served).contains("/nowhere/at/all"), "this one is tried");
    }
}
