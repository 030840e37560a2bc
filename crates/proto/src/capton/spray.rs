//! All-path transmission at switches: packets to a destination take its paths round robin (§IV.B).

use rampmeter_types::collections::IdTable;
use rampmeter_types::{Packet, SwitchProgram, TransitPacket, Verdict};

use super::wire::CaptonHeader;

/// The program of a switch that sends packets to each destination by all ports, round robin.
///
/// Round robin by destination keeps the paths of a flow equally loaded, regardless of other flows.
/// Round robin over all packets does not: if data and acknowledgements alternate, data takes every
/// second path.
#[derive(Debug, Default)]
pub struct SprayProgram {
    /// Index of the next port among the ports of each destination.
    next: IdTable<u16>,
}

impl SwitchProgram<CaptonHeader> for SprayProgram {
    const HANDLES_FORWARD: bool = true;

    #[inline]
    fn on_forward(
        &mut self,
        crossing: TransitPacket<'_>,
        packet: &mut Packet<CaptonHeader>,
    ) -> Verdict {
        let choices = crossing.choices;
        if choices.len() < 2 {
            return Verdict::Forward;
        }
        let next = self.next.entry(packet.dst.get());
        let place = usize::from(*next) % choices.len();
        *next = place as u16 + 1;
        Verdict::Redirect(choices[place])
    }
}
