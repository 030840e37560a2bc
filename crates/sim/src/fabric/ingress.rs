//! Ports at which the queued packets of a switch arrived.

use rampmeter_types::{Header, SwitchProgram};

use super::Fabric;
use crate::engine::Handle;

/// Packets that the switch itself has made arrived at no port.
const NONE: u32 = u32::MAX;

/// Queued bytes by ingress port. If off, it is empty and not used.
#[derive(Debug)]
pub(super) struct Ingress {
    pub(super) is_on: bool,
    /// The port at which each packet arrived, by handle.
    ingress_of: Vec<u32>,
    /// Queued bytes of each port, and last those of no port.
    queued_bytes: Vec<u64>,
}

impl Ingress {
    pub(super) fn new(is_on: bool, n_ports: usize) -> Self {
        let queued_bytes = if is_on { vec![0; n_ports + 1] } else { Vec::new() };
        Self { is_on, ingress_of: Vec::new(), queued_bytes }
    }

    /// Notes a packet that has reached a switch by `port`.
    pub(super) fn on_arrival(&mut self, handle: Handle, port: u32) {
        let idx = handle as usize;
        if self.ingress_of.len() <= idx {
            self.ingress_of.resize(idx + 1, NONE);
        }
        self.ingress_of[idx] = port;
    }

    /// Notes a packet that the switch itself has created.
    pub(super) fn on_created(&mut self, handle: Handle) {
        self.on_arrival(handle, NONE);
    }

    /// A packet begins to wait.
    pub(super) fn add(&mut self, handle: Handle, bytes: u16) {
        *self.queued_bytes_mut(handle) += u64::from(bytes);
    }

    /// A packet waits no longer.
    pub(super) fn release(&mut self, handle: Handle, bytes: u16) {
        *self.queued_bytes_mut(handle) -= u64::from(bytes);
    }

    /// Returns the port at which a packet in a switch arrived; `None` if the switch has made it.
    pub(super) fn port_of(&self, handle: Handle) -> Option<u32> {
        Some(self.ingress_of[handle as usize]).filter(|&port| port != NONE)
    }

    fn queued_bytes_mut(&mut self, handle: Handle) -> &mut u64 {
        let idx = (self.ingress_of[handle as usize] as usize).min(self.queued_bytes.len() - 1);
        &mut self.queued_bytes[idx]
    }

    /// Checks that every queued byte of switches is counted at some port or at none.
    pub(super) fn check(&self, used: u64) {
        let sum: u64 = self.queued_bytes.iter().sum();
        assert!(!self.is_on || sum == used, "{sum} bytes by ingress, {used} bytes wait");
    }
}

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Memory, in bytes, of the packets in a switch that arrived by its port `ingress`, at any port
    /// they are queued. Those on links do not count. Zero unless `FabricConfig::counts_ingress` or
    /// `SwitchProgram::COUNTS_INGRESS` is set.
    pub fn waiting_from(&self, ingress: u32) -> u64 {
        self.ingress.queued_bytes.get(ingress as usize).copied().unwrap_or(0)
    }

    /// A packet begins to wait at a port of `switch`, or in an interface.
    #[inline]
    pub(super) fn begin_wait(&mut self, switch: u32, handle: Handle) {
        let bytes = self.pool.get(handle).wire_bytes.max(self.config.buffer_cell);
        self.used_bytes[switch as usize] += u64::from(bytes);
        if (P::COUNTS_INGRESS || self.ingress.is_on) && switch < self.topology.n_switches() {
            self.ingress.add(handle, bytes);
        }
    }

    /// A packet waits no longer.
    #[inline]
    pub(super) fn end_wait(&mut self, switch: u32, handle: Handle) {
        let bytes = self.pool.get(handle).wire_bytes.max(self.config.buffer_cell);
        self.used_bytes[switch as usize] -= u64::from(bytes);
        if (P::COUNTS_INGRESS || self.ingress.is_on) && switch < self.topology.n_switches() {
            self.ingress.release(handle, bytes);
        }
    }
}
