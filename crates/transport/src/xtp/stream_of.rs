//! [`StreamOf`]: one association as bytes to read and write, for the table of streams.
//!
//! ```text
//!   Streams (table)  --Read, Write-->  StreamOf --number--> Links: engine, associations
//! ```

use super::links::Links;
use crate::stream::Connection;
use dacapo_lift::BelowSeen;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An association as the table of streams holds it.
pub(super) struct StreamOf {
    links: Arc<Mutex<Links>>,
    number: usize,
}

impl StreamOf {
    pub(super) fn new(links: &Arc<Mutex<Links>>, number: usize) -> Self {
        Self { links: links.clone(), number }
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        lock(&self.links)
    }
}

/// The links; nobody holds them while the table of streams is called.
pub(super) fn lock(links: &Mutex<Links>) -> MutexGuard<'_, Links> {
    // A poisoned lock still holds them.
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Read for StreamOf {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.read_vectored(&mut [IoSliceMut::new(into)])
    }

    fn read_vectored(&mut self, into: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        self.links().read(self.number, into)
    }
}

impl Write for StreamOf {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        self.links().write(self.number, parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Connection for StreamOf {
    // The end may stand behind what was read, and no event tells of it again.
    const SHORT_READ_IS_ALL: bool = false;

    fn end_writing(&mut self) {
        self.links().end_writing(self.number);
    }

    fn set_patience(&mut self, patience: Duration) {
        self.links().set_patience(self.number, patience);
    }

    fn estimates(&self) -> Option<BelowSeen> {
        let rtt = self.links().rtt(self.number);
        rtt.map(|rtt| BelowSeen { rtt: Some(rtt), ..BelowSeen::default() })
    }
}

impl Drop for StreamOf {
    fn drop(&mut self) {
        self.links().let_go(self.number);
    }
}
