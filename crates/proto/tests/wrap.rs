//! A toy layer around whole transports: it paces data packets and asks its peers nothing.

use std::sync::Arc;

use rampmeter_core::{Family, Header, NoArbiter, NodeId, Packet, Rng, Span, Time, WireError};
use rampmeter_proto::beside::{Both, Either};
use rampmeter_proto::pfabric::{PfabricConfig, PfabricFamily};
use rampmeter_proto::phost::{PhostConfig, PhostFamily};
use rampmeter_proto::wrap::{Layer, Wrap};
use rampmeter_sim::Status;
use rampmeter_testkit::suite::each_seed;
use rampmeter_testkit::*;

/// At least this much time from one data packet to the next.
#[derive(Debug)]
struct Gap(Span);

/// Holds back data packets; control packets behind one wait with it.
#[derive(Debug)]
struct Pace {
    gap: Span,
    opens: Time,
    timer: Time,
}

/// The layer says nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Silence;

impl Header for Silence {
    fn wire_len(&self) -> usize {
        0
    }

    fn encode(&self, _out: &mut [u8]) -> Result<usize, WireError> {
        Ok(0)
    }

    fn decode(_bytes: &[u8]) -> Result<(Self, usize), WireError> {
        Ok((Self, 0))
    }
}

impl<F: Family> Layer<F> for Pace {
    const NAME: &'static str = "paced";
    type Header = Silence;
    type Config = Gap;
    type Arbiter = NoArbiter<Either<Silence, F::Header>, Both<Gap, F::Config>>;

    fn new(config: &Arc<Gap>, _node: NodeId, _rng: Rng, now: Time) -> Self {
        Self { gap: config.0, opens: now, timer: Time::NEVER }
    }

    fn is_open(&self, now: Time, packet: &Packet<F::Header>) -> bool {
        packet.payload.len == 0 || self.opens <= now
    }

    fn on_leave(&mut self, now: Time, packet: &mut Packet<F::Header>) {
        if packet.payload.len > 0 {
            self.opens = now + self.gap;
            self.timer = self.opens;
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if self.timer <= now {
            self.timer = Time::NEVER;
        }
    }

    fn poll_timeout(&self) -> Time {
        self.timer
    }
}

fn paced<F: Family>(inner: F::Config, gap: Span) -> Both<Gap, F::Config> {
    Both { upper: Arc::new(Gap(gap)), lower: Arc::new(inner) }
}

/// Eleven packets take ten gaps more than one.
#[test]
fn a_wrapped_transport_sends_no_faster_than_its_layer_lets_it() {
    let gap = Span::from_ns(3_000);
    let took = |packets: u64| {
        let spec = spec(leaf_spine_at(10.0, 2, 3, 2), 1);
        let config = PfabricConfig::paper().on(&facts(&spec.topology)).unwrap();
        let flows = vec![arrival(0, 0, 4, packets * 1_460)];
        let config = paced::<PfabricFamily>(config, gap);
        let (status, records) = run::<Wrap<Pace, PfabricFamily>>(config, spec, flows);
        assert_eq!(status, Status::Finished);
        records[0].delivered.unwrap() - records[0].arrival
    };
    assert_eq!(took(11) - took(1), gap * 10);
}

#[test]
fn a_wrapped_transport_delivers_all_whatever_the_network_does() {
    let name = "a_wrapped_transport_delivers_all_whatever_the_network_does";
    each_seed(here!(), name, 0..100, |seed| {
        let Scenario { spec, arrivals, cut } = scenario(leaf_spine(2, 3, 2), seed);
        let config = PhostConfig::paper().on(&facts(&spec.topology)).unwrap();
        let config = paced::<PhostFamily>(config, Span::from_ns(200));
        assert_sound(&run::<Wrap<Pace, PhostFamily>>(config, spec, arrivals), cut);
    });
}
