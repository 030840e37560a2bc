//! Messages in the memory that an application shares with its node.

use std::sync::Arc;

use rampmeter_core::NodeId;

use super::shared::Shared;
use crate::arena::Extent;
use crate::map::Region;

/// A message that has arrived. Its room is the node's again when it is dropped, which may be after
/// its port; until then it counts against the port's receive arena.
#[derive(Debug)]
pub struct Received {
    /// The sending node.
    pub from: NodeId,
    region: Region,
    offset: u64,
    shared: Arc<Shared>,
}

impl Received {
    pub(crate) fn new(from: NodeId, region: Region, offset: u64, shared: Arc<Shared>) -> Self {
        Self { from, region, offset, shared }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }
}

impl Drop for Received {
    fn drop(&mut self) {
        self.shared.release(self.offset);
    }
}

/// Room for a message to send, in the send arena. It is given back when it is dropped.
#[derive(Debug)]
pub struct SendBuffer {
    region: Region,
    /// `None` once it is submitted.
    extent: Option<Extent>,
    shared: Arc<Shared>,
}

impl SendBuffer {
    pub(crate) fn new(region: Region, extent: Extent, shared: Arc<Shared>) -> Self {
        Self { region, extent: Some(extent), shared }
    }

    /// The message.
    pub fn bytes(&self) -> &[u8] {
        self.region.bytes()
    }

    /// The message, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.region.bytes_mut()
    }

    pub(crate) fn is_of(&self, shared: &Shared) -> bool {
        std::ptr::eq(&*self.shared, shared)
    }

    /// Its first byte within the send arena.
    pub(crate) fn offset(&self) -> u64 {
        self.extent.as_ref().map_or(0, Extent::offset)
    }

    /// Its room, which it no longer gives back.
    pub(crate) fn take(&mut self) -> Option<Extent> {
        self.extent.take()
    }
}

impl Drop for SendBuffer {
    fn drop(&mut self) {
        if let Some(extent) = self.extent.take() {
            self.shared.give_back(extent);
        }
    }
}
