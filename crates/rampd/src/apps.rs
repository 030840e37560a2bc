//! Applications of a node that has none: an arbiter's.

use std::os::fd::BorrowedFd;

use rampmeter_runtime::app::Admission;
use rampmeter_runtime::{Applications, Outcome, Submission, Ticket};
use rampmeter_types::NodeId;

/// Empty set of applications.
#[derive(Debug)]
pub(crate) struct NoApplications;

impl Applications for NoApplications {
    type Payload = Vec<u8>;
    type Assembly = DroppedMessage;

    fn poll_submission(&mut self) -> Option<Submission<Vec<u8>>> {
        None
    }

    fn finish(&mut self, _app: u32, _ticket: Ticket, _outcome: Outcome) {}

    fn admission(&self, _service: u16, _size: u32) -> Admission {
        Admission::Absent
    }

    fn open(&mut self, _service: u16, _size: u32) -> DroppedMessage {
        DroppedMessage
    }

    fn deliver(&mut self, _from: NodeId, _service: u16, _message: DroppedMessage) {}

    fn arm(&mut self) -> bool {
        false
    }

    fn wakers(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
}

/// A message that is dropped.
#[derive(Debug)]
pub(crate) struct DroppedMessage;

impl rampmeter_runtime::Assembly for DroppedMessage {
    fn write(&mut self, _offset: usize, _bytes: &[u8]) {}
}
