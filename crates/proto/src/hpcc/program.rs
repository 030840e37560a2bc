//! The program of switches: telemetry on every data packet that departs (§4.1).

use rampmeter_types::{Departure, Packet, SwitchProgram, TransitPacket, Verdict};

use super::int::Record;
use super::wire::HpccHeader;

/// Writes a record on data packets. A packet that has passed more switches than it has space for
/// keeps the records of the first ones.
#[derive(Clone, Copy, Debug)]
pub struct TelemetryProgram;

impl SwitchProgram<HpccHeader> for TelemetryProgram {
    const HANDLES_FORWARD: bool = false;
    const HANDLES_DEPART: bool = true;

    fn on_forward(
        &mut self,
        _crossing: TransitPacket<'_>,
        _packet: &mut Packet<HpccHeader>,
    ) -> Verdict {
        Verdict::Forward
    }

    #[inline]
    fn on_depart(&mut self, departure: Departure, packet: &mut Packet<HpccHeader>) {
        let HpccHeader::Data { path, records, .. } = &mut packet.header else { return };
        let Departure { now, port, rate, queued, sent } = departure;
        // The paper joins switches by XOR (§4.1); with a rotation the order counts too.
        *path = path.rotate_left(5) ^ (port as u16).wrapping_mul(0x9e37);
        records.push(Record::new(now, sent, queued, rate));
    }
}
