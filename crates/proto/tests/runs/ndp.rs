//! NDP in whole simulations: exact times, and ports that trim under incasts.

use std::sync::Arc;

use rampmeter_proto::ndp::{NdpConfig, NdpTransport};
use rampmeter_proto::registered::RegisteredTransport;
use rampmeter_sim::fabric::{DropReason, TierStats};
use rampmeter_sim::*;
use rampmeter_testkit::*;
use rampmeter_types::fabric::{Need, Trim};
use rampmeter_types::{Bytes, Rate, Span, Time};

type Runs = (Status, Vec<FlowRecord>, Vec<TierStats>);

/// Runs `arrivals` over the ports that the preset requests.
fn run_over_its_ports(keys: &NdpConfig, spec: SimSpec, arrivals: Vec<Arrival>) -> Runs {
    let place = TestNetwork::<NdpTransport>::simulated(keys, spec.topology.clone());
    let needs = NdpTransport::needs(keys, &facts(&spec.topology));
    let Need::Prefer(buffer) = needs.buffer else { panic!("{:?}", needs.buffer) };
    let fabric = FabricConfig { buffer, ..place.fabric };
    let spec = SimSpec { fabric, ..spec };
    let mut records = Records::default();
    let config = Arc::new(place.config);
    let mut sim = Sim::<NdpTransport, _, _>::new(spec, config, arrivals.into_iter(), &mut records);
    let status = sim.run(u64::MAX);
    let tiers = sim.fabric().tier_stats();
    drop(sim);
    records.0.sort_by_key(|r| r.id);
    (status, records.0, tiers)
}

fn tier<'a>(tiers: &'a [TierStats], name: &str) -> &'a TierStats {
    tiers.iter().find(|t| t.name == name).unwrap()
}

/// A flow of one window takes its ideal time. With longer ones the pulls keep the link busy, as the
/// window is a bandwidth-delay product.
#[test]
fn a_lone_ndp_flow_runs_at_line_rate() {
    for packets in [1, 7, 49, 1_000] {
        let spec = spec(leaf_spine(9, 16, 4), 1);
        let flow = vec![arrival(0, 1, 100, packets * 1460)];
        let (_, records, _) = run_over_its_ports(&NdpConfig::paper(), spec, flow);
        let took = (records[0].delivered.unwrap() - records[0].arrival).as_ps();
        let alone = 4 * 650_000 + 2 * 120_000 + 2 * 30_000 + (packets - 1) * 120_000;
        assert_eq!(took, alone, "{packets} packets");
    }
}

/// The recorded run of csg-htsim charges 64 bytes more a packet. Its first rows have 6 151 200 ps
/// for six packets and 11 406 240 ps for 48, each to another rack.
#[test]
fn lone_flows_of_the_reference_preset_take_the_recorded_times() {
    for (size, recorded) in [(8_760, 6_151_200), (70_080, 11_406_240)] {
        let spec = spec(leaf_spine(9, 16, 4), 1);
        let flow = vec![arrival(0, 118, 25, size)];
        let (_, records, _) = run_over_its_ports(&NdpConfig::reference(), spec, flow);
        let took = (records[0].completed.unwrap() - records[0].arrival).as_ps();
        assert_eq!(took, recorded, "{size} bytes");
    }
}

fn incast(senders: u64, packets: u64) -> Vec<Arrival> {
    (0..senders).map(|n| arrival(0, 1 + n as u32, 0, packets * 1460)).collect()
}

/// Data queues hold eight packets at most, every packet that does not fit is trimmed, and headers
/// never outgrow their queue. So nothing is lost (section 3.1). The last link is busy all the time:
/// the incast takes as long as its bytes do, within 1 %.
#[test]
fn an_incast_trims_and_loses_nothing() {
    let (senders, packets) = (20, 1_000);
    let spec = spec(leaf_spine(9, 16, 4), 1);
    let (status, records, tiers) =
        run_over_its_ports(&NdpConfig::paper(), spec, incast(senders, packets));
    assert_eq!((status, records.len()), (Status::Finished, senders as usize));
    let down = tier(&tiers, "tor-down");
    let trimming = down.trimming.unwrap();
    assert_eq!(trimming.data_max, Bytes::new(8 * 1500));
    assert!(trimming.headers_max <= Bytes::new(8 * 1500), "{trimming:?}");
    assert!(trimming.trims > 500, "{trimming:?}");
    assert!(tiers.iter().all(|t| t.drops == [0; DropReason::COUNT]), "{tiers:?}");
    let last = records.iter().map(|r| r.delivered.unwrap()).max().unwrap();
    let bytes = senders * packets * 1500;
    let busy = Rate::from_gbps(100).tx_time(Bytes::new(bytes)).as_us_f64();
    let took = (last - Time::ZERO).as_us_f64();
    assert!(took >= busy, "{took} us for {busy} us of data");
    assert!(took <= 1.01 * busy, "{took} us for {busy} us of data");
}

/// With a header queue of a few headers, most headers of an incast return to their senders.
/// Everything arrives nevertheless, without a timeout (section 3.2).
#[test]
fn headers_that_overflow_the_queue_return_to_their_senders() {
    let mut spec = spec(leaf_spine(9, 16, 4), 1);
    spec.drain = Span::from_us(2_000_000);
    let keys = NdpConfig { rto: Some(Span::from_us(1_000_000)), ..NdpConfig::paper() };
    let place = TestNetwork::<NdpTransport>::simulated(&keys, spec.topology.clone());
    let trim = Trim { headers: Bytes::new(640), ..Trim::paper(Bytes::new(1500)) };
    let buffer = Buffer::PerPort(Bytes::new(12_000));
    let fabric = FabricConfig { buffer, trim, ..place.fabric };
    let mut records = Records::default();
    let arrivals = incast(140, 30).into_iter();
    let config = Arc::new(place.config);
    let spec = SimSpec { fabric, ..spec };
    let mut sim = Sim::<NdpTransport, _, _>::new(spec, config, arrivals, &mut records);
    assert_eq!(sim.run(u64::MAX), Status::Finished);
    let trimming = tier(&sim.fabric().tier_stats(), "tor-down").trimming.unwrap();
    assert!(trimming.returns > 500, "{trimming:?}");
    assert_eq!(trimming.headers_max, Bytes::new(640));
    let dropped = sim.fabric().stats().dropped();
    drop(sim);
    let last = records.0.iter().map(|r| r.completed.unwrap()).max().unwrap();
    if dropped == 0 {
        assert!(last < Time::ZERO + Span::from_us(2_000), "no timeout: {last}");
    }
}
