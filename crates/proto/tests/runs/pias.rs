//! PIAS in whole simulations: the bytes at which packets fall from class to class, and overtaking.

use std::sync::Arc;

use rampmeter_proto::pias::config::Thresholds;
use rampmeter_proto::pias::{PiasConfig, PiasTransport};
use rampmeter_proto::tcp::TcpConfig;
use rampmeter_sim::{Direction, InterfacePacket, Probe, Sim};
use rampmeter_testkit::*;
use rampmeter_types::{Header, NodeId, Priority};

const PACKET: u64 = 1_460;
/// All packets in the highest class.
const NONE: Thresholds = [100_000_000; 7];

/// Without a handshake, with a window of at most 50 packets, of which ten are sent at once.
fn config(thresholds: Thresholds) -> PiasConfig {
    let tcp = TcpConfig { handshake: false, window_max: 50, ..TcpConfig::dctcp() };
    PiasConfig { thresholds, tcp }
}

/// Packets of host 0: the offset of each payload, or none for a control packet, and the class.
#[derive(Default)]
struct Classes(Vec<(Option<u64>, Priority)>);

impl Probe for Classes {
    const PACKETS: bool = true;

    fn on_packet<H: Header>(&mut self, passing: &InterfacePacket<'_, H>) {
        if passing.direction == Direction::Sent && passing.end == NodeId::new(0) {
            let part = passing.packet.payload;
            let offset = (part.len > 0).then_some(part.offset);
            self.0.push((offset, passing.packet.priority));
        }
    }
}

#[test]
fn packets_of_a_flow_are_demoted_at_the_thresholds() {
    let spec = spec(leaf_spine_at(10.0, 1, 2, 1), 1);
    let config = config([1, 3, 5, 10, 20, 40, 80]).derive(&facts(&spec.topology)).unwrap();
    let mut seen = Classes::default();
    // The second message makes host 0 acknowledge.
    let flows = vec![arrival(0, 0, 1, 200 * PACKET), arrival(0, 1, 0, 20 * PACKET)];
    Sim::<PiasTransport, _, _>::new(spec, Arc::new(config), flows.into_iter(), &mut seen)
        .run(u64::MAX);
    let mut classes = [0; 8];
    let mut n_control = 0;
    let mut next = 0;
    for (offset, class) in seen.0 {
        let Some(offset) = offset else {
            assert_eq!(class, Priority::HIGHEST, "a control packet");
            n_control += 1;
            continue;
        };
        assert_eq!(offset, next, "nothing is lost or overtaken");
        next += PACKET;
        classes[usize::from(class.get())] += 1;
    }
    assert_eq!(classes, [2, 2, 2, 5, 10, 20, 40, 119]);
    assert!(n_control >= 20, "{n_control} control packets");
}

/// Two long messages keep a queue at host 3's port. A short one waits for no more than the packet
/// that the port is sending; in one class it waits for the queue.
#[test]
fn a_short_message_overtakes_long_ones_at_a_port() {
    let took = |thresholds, long: u64| {
        let spec = spec(leaf_spine_at(10.0, 1, 4, 1), 1);
        let config = config(thresholds).derive(&facts(&spec.topology)).unwrap();
        let short = arrival(1_000_000_000, 2, 3, 10 * PACKET);
        let mut flows = vec![short];
        if long > 0 {
            let at = [(0, 0), (0, 1)];
            let long = at.map(|(at, src)| arrival(at, src, 3, long * PACKET));
            flows.splice(0..0, long);
        }
        let (_, records) = run::<PiasTransport>(config, spec, flows);
        let record = records.iter().find(|r| r.src == NodeId::new(2)).unwrap();
        (record.delivered.unwrap() - record.arrival).as_ps()
    };
    let pias = [20, 20, 20, 20, 20, 20, 20];
    let alone = took(pias, 0);
    let (overtaking, waiting) = (took(pias, 2_000), took(NONE, 2_000));
    let packet = 1_200_000;
    assert!((alone..=alone + packet).contains(&overtaking), "{overtaking}, alone {alone}");
    assert!(waiting > alone + 40 * packet, "{waiting}, alone {alone}");
}
