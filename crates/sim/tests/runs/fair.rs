//! Fair queueing in whole runs.

use std::sync::Arc;

use crate::common::{Blast, Segmentation};
use rampmeter_sim::*;
use rampmeter_testkit::{Records, arrival, star};
use rampmeter_types::fabric::{PfcClasses, PfcThreshold};
use rampmeter_types::{Bytes, NodeId, Priority, Span};

/// Returns the records of messages to host 0 of a star, by number, and the packets that were
/// dropped.
fn records(fabric: FabricConfig, arrivals: &[Arrival]) -> (Vec<FlowRecord>, u64) {
    let mut spec = rampmeter_testkit::spec(star(6).build().unwrap(), 1);
    spec.fabric = fabric;
    spec.drain = Span::from_us(10_000);
    let mut records = Records::default();
    let config = Arc::new(Segmentation::default());
    let arrivals = arrivals.iter().copied();
    let mut sim = Sim::<Blast, _, _>::new(spec, config, arrivals, &mut records);
    while sim.run(u64::MAX) == Status::Running {}
    let dropped = sim.fabric().stats().dropped();
    drop(sim);
    records.0.sort_by_key(|record| record.id);
    (records.0, dropped)
}

fn fabric(scheduling: Scheduling) -> FabricConfig {
    FabricConfig {
        buffer: Buffer::PerPort(Bytes::new(1 << 30)),
        scheduling,
        ..FabricConfig::default()
    }
}

fn delivered(records: &[FlowRecord]) -> Vec<u64> {
    records.iter().map(|record| record.delivered.unwrap().as_ps()).collect()
}

#[test]
fn a_lone_message_takes_its_ideal_time() {
    for size in [1, 1460, 100_000, 3_000_000] {
        let arrivals = [arrival(0, 1, 0, size)];
        let [fifo, fair] = [Scheduling::Fifo, Scheduling::Fair]
            .map(|d| delivered(&records(fabric(d), &arrivals).0));
        assert_eq!(fifo, fair);
    }
}

/// Three messages meet at the link to host 0: a long one, another long one, and a short one that
/// arrives when both are queued.
#[test]
fn a_short_message_passes_queues_and_the_link_is_never_idle() {
    let arrivals = [
        arrival(0, 1, 0, 2_920_000),
        arrival(0, 2, 0, 2_920_000),
        arrival(100_000_000, 3, 0, 29_200),
    ];
    let (fifo, lost) = records(fabric(Scheduling::Fifo), &arrivals);
    let (fair, also) = records(fabric(Scheduling::Fair), &arrivals);
    assert_eq!((lost, also), (0, 0));
    let (fifo, fair) = (delivered(&fifo), delivered(&fair));
    // The same bytes take the same time.
    assert_eq!(fifo.iter().max(), fair.iter().max());
    // 20 packets of 120 ns with a third of the link, two links of 650 ns, and one more turn.
    let alone = 20 * 120_000 + 120_000 + 2 * 650_000;
    let (short, before) = (fair[2] - 100_000_000, fifo[2] - 100_000_000);
    assert!(short <= alone + 2 * 21 * 120_000, "{short} ps");
    assert!(before > 90_000_000, "{before} ps in order of arrival");
}

#[test]
fn push_out_drops_packets_of_the_longest_queues() {
    let arrivals = [
        arrival(0, 1, 0, 2_920_000),
        arrival(0, 2, 0, 2_920_000),
        arrival(50_000_000, 3, 0, 29_200),
    ];
    let buffer = Buffer::PerPort(Bytes::new(90_000));
    let fabric = FabricConfig { buffer, overflow: Overflow::PushOut, ..fabric(Scheduling::Fair) };
    let (records, dropped) = records(fabric, &arrivals);
    assert!(dropped > 1_000, "{dropped} packets dropped");
    let arrived: Vec<bool> = records.iter().map(|record| record.delivered.is_some()).collect();
    assert_eq!(arrived, [false, false, true]);
}

#[test]
fn paused_classes_lose_nothing() {
    let arrivals: Vec<Arrival> = (1..6).map(|src| arrival(0, src, 0, 2_920_000)).collect();
    let pfc = PfcConfig {
        threshold: PfcThreshold::Static(Bytes::new(30_000)),
        hysteresis: Bytes::new(3_000),
        headroom: None,
        classes: PfcClasses::Data,
        packet: Bytes::new(1500),
    };
    let buffer = Buffer::Shared { per_switch: Bytes::new(1_000_000), alpha: 1.0 };
    let fabric = FabricConfig { buffer, pfc: Some(pfc), ..fabric(Scheduling::Fair) };
    let (records, dropped) = records(fabric, &arrivals);
    assert_eq!(dropped, 0);
    // Equal messages that begin together end together.
    let times = delivered(&records);
    let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
    assert!(last - first < 20_000_000, "{times:?}");
}

/// Strict priority comes first: the urgent message is not delayed by turns of others.
#[test]
fn strict_priority_precedes_fairness() {
    let config = Segmentation { urgent: Some(NodeId::new(3)), ..Segmentation::default() };
    assert!(config.priority < Priority::new(6));
    let mut spec = rampmeter_testkit::spec(star(6).build().unwrap(), 1);
    spec.fabric = fabric(Scheduling::Fair);
    let arrivals = [
        arrival(0, 1, 0, 2_920_000),
        arrival(0, 2, 0, 2_920_000),
        arrival(9_000_000, 3, 0, 146_000),
    ];
    let (_, records) = rampmeter_testkit::run::<Blast>(config, spec, arrivals.to_vec());
    let took = records[2].delivered.unwrap().as_ps() - 9_000_000;
    // 100 packets, behind at most one packet of another class.
    assert!(took <= 102 * 120_000 + 2 * 650_000, "{took} ps");
}
