//! All-path transmission at switches: packets to a destination take its paths in turn (§IV.B).

use rampmeter_core::{Crossing, Hop, Packet, Verdict};

use super::wire::CaptonHeader;

/// The program of a switch that sends packets to each destination by all ports in turn.
///
/// Round robin by destination keeps the paths of a flow equally loaded, whatever else the switch
/// forwards. Round robin over all packets does not: where data and acknowledgements alternate, data
/// takes every second path.
#[derive(Debug, Default)]
pub struct AllPaths {
    /// By destination: the place of the next port among its ports.
    next: Vec<u16>,
}

impl Hop<CaptonHeader> for AllPaths {
    const ACTIVE: bool = true;

    #[inline]
    fn on_forward(&mut self, crossing: Crossing<'_>, packet: &mut Packet<CaptonHeader>) -> Verdict {
        let choices = crossing.choices;
        if choices.len() < 2 {
            return Verdict::Forward;
        }
        let dst = packet.dst.idx();
        if self.next.len() <= dst {
            self.next.resize(dst + 1, 0);
        }
        let place = usize::from(self.next[dst]) % choices.len();
        self.next[dst] = place as u16 + 1;
        Verdict::Via(choices[place])
    }
}
