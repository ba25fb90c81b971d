//! How long the packets of one association are, for who knows more of its path than it does.

use super::{ContextId, Engine, UserError};
use dacapo_base::Time;

impl Engine {
    /// From now on no packet of this association is longer than `len` bytes, where they were; what
    /// goes again is cut anew, and the peer is asked for packets as short (TCNTL).
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn shorten_packets(
        &mut self,
        now: Time,
        id: ContextId,
        len: usize,
    ) -> Result<(), UserError> {
        self.context(id)?.shorten(len);
        self.touch(now, id.slot);
        Ok(())
    }

    /// The longest packet of this association, bytes.
    ///
    /// # Errors
    /// [`UserError::Released`].
    pub fn packet_len_max(&mut self, id: ContextId) -> Result<usize, UserError> {
        Ok(self.context(id)?.packet_len_max())
    }
}
