//! Messages in the memory that an application shares with its node.

use std::sync::Arc;

use rampmeter_runtime::Ticket;
use rampmeter_types::NodeId;

use super::error::SubmitError;
use super::options::Options;
use super::shared::SharedMemory;
use crate::arena::Extent;
use crate::map::Region;

/// A message that has arrived. Its memory is released when it is dropped, which may be after its
/// port was dropped. Until then it counts against the port's receive arena.
#[derive(Debug)]
pub struct ReceivedMessage {
    /// Sending node.
    pub from: NodeId,
    /// User of the sending program, if that program is on the same node.
    pub uid: Option<u32>,
    region: Region,
    offset: u64,
    shared: Arc<SharedMemory>,
}

impl ReceivedMessage {
    /// Returns a received message; `None` if the entry is not within the receive arena.
    pub(super) fn new(
        shared: &Arc<SharedMemory>,
        from: NodeId,
        uid: Option<u32>,
        offset: u64,
        size: u32,
    ) -> Option<Self> {
        let region = shared.received(offset, size)?;
        Some(Self { from, uid, region, offset, shared: Arc::clone(shared) })
    }

    /// Returns the bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }
}

impl Drop for ReceivedMessage {
    fn drop(&mut self) {
        self.shared.release(self.offset);
    }
}

/// Memory for a message to send, in the send arena. It is freed when it is dropped.
#[derive(Debug)]
pub struct SendBuffer {
    region: Region,
    /// `None` once it is submitted.
    extent: Option<Extent>,
    shared: Arc<SharedMemory>,
}

impl SendBuffer {
    /// Allocates memory for a message of `size` bytes.
    pub(super) fn new(shared: &Arc<SharedMemory>, size: usize) -> Result<Self, SubmitError> {
        let (region, extent) = shared.alloc(size)?;
        Ok(Self { region, extent: Some(extent), shared: Arc::clone(shared) })
    }

    /// Returns the bytes of the message.
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }

    /// Returns the bytes of the message, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut()
    }

    pub(super) fn is_of(&self, shared: &SharedMemory) -> bool {
        std::ptr::eq(&*self.shared, shared)
    }

    /// Submits the message. Returns true if the node must be woken.
    pub(super) fn submit(
        mut self,
        dst: NodeId,
        service: u16,
        options: Options,
    ) -> Result<(Ticket, bool), (SubmitError, Self)> {
        let size = self.region.bytes().len() as u32;
        match self.shared.submit(dst, service, size, &mut self.extent, options) {
            Ok(submitted) => Ok(submitted),
            Err(error) => Err((error, self)),
        }
    }
}

impl Drop for SendBuffer {
    fn drop(&mut self) {
        if let Some(extent) = self.extent.take() {
            self.shared.free_extent(extent);
        }
    }
}
