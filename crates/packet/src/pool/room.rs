//! Bytes before and after every segment: the headers and trailers that modules add and remove.
//!
//! ```text
//!  push_head, put_head     |room|hdr|payload|      <- room becomes header
//!  pull_head, take_head    |room----|payload|      header becomes room ->
//! ```
//!
//! Invariant: a call changes every segment of the packet or, when one has no room, none.

use super::{NoRoom, Pool};
use crate::Packet;

impl Pool {
    /// Adds `N` bytes before every segment and fills them with what `make` says for its index: one
    /// look at the body for all of them.
    ///
    /// # Errors
    /// [`NoRoom`] when the view has less room; nothing changed.
    #[inline]
    pub fn put_head<const N: usize>(
        &mut self,
        packet: &mut Packet,
        mut make: impl FnMut(usize) -> [u8; N],
    ) -> Result<(), NoRoom> {
        const { assert!(N > 0 && N < 1 << 16) };
        // An empty slot has no room.
        if packet.head < N as u16 {
            return Err(NoRoom);
        }
        packet.head -= N as u16;
        packet.offset -= N as u32;
        packet.len += N as u32;
        let bytes = &mut self.bodies[packet.body as usize].bytes;
        let mut at = packet.offset as usize;
        if packet.count == 1 {
            bytes[at..at + N].copy_from_slice(&make(0));
            return Ok(());
        }
        for index in 0..packet.segment_count() {
            bytes[at..at + N].copy_from_slice(&make(index));
            at += usize::from(packet.stride);
        }
        Ok(())
    }

    /// Adds `N` bytes after every segment and fills them with what `make` says of the segment's
    /// bytes before them.
    ///
    /// # Errors
    /// [`NoRoom`] when the view has less room; nothing changed.
    #[inline]
    pub fn put_tail<const N: usize>(
        &mut self,
        packet: &mut Packet,
        mut make: impl FnMut(&[u8]) -> [u8; N],
    ) -> Result<(), NoRoom> {
        self.push_tail(packet, N)?;
        let bytes = &mut self.bodies[packet.body as usize].bytes;
        for index in 0..packet.segment_count() {
            let at = packet.segment_offset(index);
            let segment = &mut bytes[at..at + packet.segment_len(index)];
            if let Some((before, tail)) = segment.split_last_chunk_mut::<N>() {
                *tail = make(before);
            }
        }
        Ok(())
    }

    /// Removes the first `N` bytes of a packet of one segment and says what they were.
    ///
    /// # Errors
    /// [`NoRoom`] when it is shorter, or a train; nothing changed.
    #[inline]
    pub fn take_head<const N: usize>(&self, packet: &mut Packet) -> Result<[u8; N], NoRoom> {
        // An empty slot has no segment.
        if packet.count != 1 || packet.shortest_len() < N {
            return Err(NoRoom);
        }
        let at = packet.offset as usize;
        let bytes = &self.bodies[packet.body as usize].bytes;
        let mut head = [0; N];
        head.copy_from_slice(&bytes[at..at + N]);
        packet.pulled_head(N);
        Ok(head)
    }

    /// Adds `n` bytes before every segment; write them through [`Pool::head_mut`].
    ///
    /// # Errors
    /// [`NoRoom`] when the view has less room; nothing changed.
    #[inline]
    pub fn push_head(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if packet.is_empty_slot() || packet.head_room() < n {
            return Err(NoRoom);
        }
        packet.offset -= n as u32;
        packet.head -= n as u16;
        packet.len += n as u32;
        Ok(())
    }

    /// Adds `n` bytes after every segment; write them through [`Pool::tail_mut`].
    ///
    /// # Errors
    /// [`NoRoom`] when the view has less room; nothing changed.
    #[inline]
    pub fn push_tail(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if packet.is_empty_slot() || packet.tail_room() < n {
            return Err(NoRoom);
        }
        packet.tail -= n as u16;
        packet.len += n as u32;
        Ok(())
    }

    /// Removes `n` bytes from the front of every segment; they become room.
    ///
    /// # Errors
    /// [`NoRoom`] when a segment is shorter; nothing changed.
    #[inline]
    pub fn pull_head(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if packet.shortest_len() < n || packet.is_empty_slot() {
            return Err(NoRoom);
        }
        packet.pulled_head(n);
        Ok(())
    }

    /// Removes `n` bytes from the end of every segment; they become room.
    ///
    /// # Errors
    /// [`NoRoom`] when a segment is shorter; nothing changed.
    #[inline]
    pub fn pull_tail(&mut self, packet: &mut Packet, n: usize) -> Result<(), NoRoom> {
        if packet.shortest_len() < n || packet.is_empty_slot() {
            return Err(NoRoom);
        }
        packet.len -= n as u32;
        if !packet.is_shared() {
            packet.tail = packet.tail.saturating_add(n as u16);
        }
        Ok(())
    }

    /// The first `n` bytes of segment `index`, which [`Pool::push_head`] added.
    ///
    /// Empty when the segment is shorter: write nothing then.
    #[inline]
    pub fn head_mut(&mut self, packet: &Packet, index: usize, n: usize) -> &mut [u8] {
        let start = packet.segment_offset(index);
        let n = if packet.segment_len(index) < n { 0 } else { n };
        &mut self.bodies[packet.body as usize].bytes[start..start + n]
    }

    /// The last `n` bytes of segment `index`, which [`Pool::push_tail`] added.
    ///
    /// Empty when the segment is shorter: write nothing then.
    #[inline]
    pub fn tail_mut(&mut self, packet: &Packet, index: usize, n: usize) -> &mut [u8] {
        let len = packet.segment_len(index);
        let n = if len < n { 0 } else { n };
        let start = packet.segment_offset(index) + len - n;
        &mut self.bodies[packet.body as usize].bytes[start..start + n]
    }
}
