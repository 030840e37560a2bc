//! The same in the simulator: as many flows of one pair of hosts at once.

use rampmeter_proto::RegisteredTransport;
use rampmeter_sim::Arrival;
use rampmeter_testkit::{TestNetwork, run, spec, star};
use rampmeter_types::{Bytes, NodeId, Span, Time};

use crate::bed::processor_time;

/// Returns the processor time of all flows, and the number that complete.
pub(crate) fn pair<T: RegisteredTransport>(flows: u64) -> (Span, usize) {
    let topology = star(4).build().expect("a network");
    let place = TestNetwork::<T>::simulated(&T::Keys::default(), topology);
    let mut spec = spec(place.topology, 1);
    (spec.fabric, spec.sample, spec.paranoid) = (place.fabric, None, false);
    let (src, dst) = (NodeId::new(0), NodeId::new(1));
    let arrivals =
        (0..flows).map(|_| Arrival::new(Time::ZERO, src, dst, Bytes::new(200))).collect();
    let begin = processor_time();
    let (_, records) = run::<T>(place.config, spec, arrivals);
    let processor = processor_time() - begin;
    (processor, records.iter().filter(|record| record.completed.is_some()).count())
}
