//! One message to send, limits on the number of messages, and merging of sources in arrival order.

use std::iter::Peekable;

use rampmeter_types::{Bytes, NodeId, Span, TenantId, Time};

/// One message: its submission time, sender, receiver and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Flow {
    /// Time at which the application submits it.
    pub arrival: Time,
    /// The sending host.
    pub src: NodeId,
    /// The receiving host, never the sender.
    pub dst: NodeId,
    /// Length, at least one byte.
    pub size: Bytes,
    /// Tenant: the part of a mix; without a mix that of the trace, or zero.
    pub tenant: TenantId,
    /// Time from the arrival until the application needs the message; [`Span::MAX`] if not set.
    pub deadline: Span,
}

impl Flow {
    /// Creates a flow of no particular tenant.
    pub fn new(arrival: Time, src: NodeId, dst: NodeId, size: Bytes) -> Self {
        Self { arrival, src, dst, size, tenant: TenantId::default(), deadline: Span::MAX }
    }
}

/// Flows in arrival order.
pub type FlowSource = Box<dyn Iterator<Item = Flow> + Send>;

/// End of a source: a number of flows, an instant, or the earlier of the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowLimit {
    /// Maximum number of flows.
    pub flows: Option<u64>,
    /// Instant before which flows arrive.
    pub until: Option<Time>,
}

impl FlowLimit {
    /// Limits `source`.
    pub fn apply(self, source: FlowSource) -> FlowSource {
        let until = self.until.unwrap_or(Time::NEVER);
        let before = source.take_while(move |flow| flow.arrival < until);
        match self.flows {
            // Counts beyond the address space cannot be reached.
            Some(n) => Box::new(before.take(usize::try_from(n).unwrap_or(usize::MAX))),
            None => Box::new(before),
        }
    }
}

/// Merges sources, each in arrival order, into one in arrival order. Flows that arrive at the same
/// instant are in the order of `sources`, and flows of one source in their own order.
pub fn merge(mut sources: Vec<FlowSource>) -> FlowSource {
    match sources.len() {
        1 => sources.remove(0),
        _ => {
            Box::new(MergedFlows { sources: sources.into_iter().map(Iterator::peekable).collect() })
        }
    }
}

/// Merges by scanning: a workload has a handful of sources, not thousands.
struct MergedFlows {
    sources: Vec<Peekable<FlowSource>>,
}

impl Iterator for MergedFlows {
    type Item = Flow;

    fn next(&mut self) -> Option<Flow> {
        let mut first: Option<(Time, usize)> = None;
        for (idx, source) in self.sources.iter_mut().enumerate() {
            let Some(flow) = source.peek() else { continue };
            if first.is_none_or(|(arrival, _)| flow.arrival < arrival) {
                first = Some((flow.arrival, idx));
            }
        }
        first.and_then(|(_, idx)| self.sources[idx].next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(flows: &[(u64, u32)]) -> FlowSource {
        let flows: Vec<Flow> = flows
            .iter()
            .map(|&(ps, src)| {
                let (src, dst) = (NodeId::new(src), NodeId::new(99));
                Flow::new(Time::from_ps(ps), src, dst, Bytes::new(1))
            })
            .collect();
        Box::new(flows.into_iter())
    }

    fn sources_of(merged: FlowSource) -> Vec<u32> {
        merged.map(|flow| flow.src.get()).collect()
    }

    #[test]
    fn a_merge_is_in_arrival_order_and_ties_keep_the_order_of_sources() {
        let merged = merge(vec![
            source(&[(5, 0), (5, 1), (9, 2)]),
            source(&[(1, 3), (5, 4)]),
            source(&[]),
            source(&[(5, 5)]),
        ]);
        assert_eq!(sources_of(merged), [3, 0, 1, 4, 5, 2]);
        assert_eq!(sources_of(merge(vec![])), [0; 0]);
    }

    #[test]
    fn a_limit_stops_at_its_first_bound() {
        let flows = [(1, 0), (2, 1), (3, 2), (4, 3)];
        let by_count = FlowLimit { flows: Some(2), until: Some(Time::from_ps(4)) };
        assert_eq!(sources_of(by_count.apply(source(&flows))), [0, 1]);
        let by_time = FlowLimit { flows: Some(9), until: Some(Time::from_ps(4)) };
        assert_eq!(sources_of(by_time.apply(source(&flows))), [0, 1, 2]);
        assert_eq!(sources_of(FlowLimit::default().apply(source(&flows))), [0, 1, 2, 3]);
    }
}
