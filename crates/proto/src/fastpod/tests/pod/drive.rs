//! Operations of tests on a pod, and their observations of it.

use std::cmp::Reverse;

use rampmeter_types::SourceRoute;
use rampmeter_types::{Bytes, Message, MsgId, NodeId, Observation, Time};

use super::{ModelEvent, Node, P, Run};
use crate::fastpod::FastpodStats;

impl Run {
    /// Submits a message at a time.
    pub(in super::super) fn submit(&mut self, at: Time, src: u32, dst: u32, size: u64) -> MsgId {
        let number = self.messages.len();
        let id = MsgId::new(number as u32);
        let message = Message::new(id, NodeId::new(dst), Bytes::new(size));
        self.messages.push((at, message, src));
        self.push(at, ModelEvent::Submit(number));
        id
    }

    pub(in super::super) fn kill(&mut self, at: Time, arbiter: u32) {
        self.push(at, ModelEvent::Kill(self.fastpod.n_hosts + arbiter));
    }

    pub(in super::super) fn restart(&mut self, at: Time, arbiter: u32) {
        self.push(at, ModelEvent::Restart(self.fastpod.n_hosts + arbiter));
    }

    pub(in super::super) fn stats(&self) -> FastpodStats {
        let mut all = FastpodStats::default();
        for node in &self.nodes {
            let Node::Host(host) = node else { continue };
            let FastpodStats {
                rts_sent,
                cells_unscheduled,
                slots_unused,
                grants_expired,
                transmissions_missed,
                timeouts,
                resets,
                takeovers,
                cells_retransmitted: _,
            } = host.stats();
            all.rts_sent += rts_sent;
            all.cells_unscheduled += cells_unscheduled;
            all.slots_unused += slots_unused;
            all.grants_expired += grants_expired;
            all.transmissions_missed += transmissions_missed;
            all.timeouts += timeouts;
            all.resets += resets;
            all.takeovers += takeovers;
        }
        all
    }

    /// Returns the arbiters' counter of a name.
    pub(in super::super) fn count(&self, name: &str) -> u64 {
        let mut sum = 0;
        for node in &self.nodes {
            if let Node::Arbiter(arbiter) = node {
                arbiter.counters(&mut |of, n| sum += if of == name { n } else { 0 });
            }
        }
        sum
    }

    /// Returns the messages that the hosts keep something of.
    pub(in super::super) fn left(&self) -> usize {
        let of = |node: &Node| match node {
            Node::Host(host) => host.message_counts().map_or(0, |(sent, arriving)| sent + arriving),
            _ => 0,
        };
        self.nodes.iter().map(of).sum()
    }

    /// Returns the next event if it is at `end` or before.
    pub(in super::super) fn next(&self, end: Time) -> Option<ModelEvent> {
        let Reverse((at, _, _, what)) = self.events.peek()?;
        (*at <= end).then_some(*what)
    }

    /// Takes one step in time.
    pub(in super::super) fn step(&mut self) {
        let Some(Reverse((at, _, _, what))) = self.events.pop() else { return };
        self.now = at;
        self.handle(what);
    }

    /// The packet that arrives next is lost.
    pub(in super::super) fn lose(&mut self) {
        if let Some(Reverse((at, _, _, ModelEvent::Deliver(_, id)))) = self.events.pop() {
            self.now = at;
            self.cut.remove(&id);
            self.packets.remove(&id);
        }
    }

    /// Stops a node permanently.
    pub(in super::super) fn crash(&mut self, node: u32) {
        self.handle(ModelEvent::Kill(node));
    }

    /// Returns the packet with this number, if it is in flight.
    pub(in super::super) fn peek(&self, id: u64) -> Option<&P> {
        self.packets.get(&id)
    }

    /// Sends a cell that is at its source's rack by this aggregation switch.
    pub(in super::super) fn turn(&mut self, id: u64, agg: u16) {
        let pod = self.pod.as_ref().expect("racks are of pods");
        let packet = self.packets.get_mut(&id).expect("it is in flight");
        let rack = |host: NodeId| usize::from(pod.hosts[host.idx()].rack);
        let (from, to) = (rack(packet.src), rack(packet.dst));
        let up = pod.ports_to_agg[from][usize::from(agg)];
        let down = pod.ports_to_rack[usize::from(agg)][to];
        let route = SourceRoute::new(&[up, down, pod.hosts[packet.dst.idx()].port]);
        packet.path = route.expect("a route of the pod").path();
    }

    /// Returns true if a packet is at the switch of its source's rack, and not at that of its
    /// receiver's.
    pub(in super::super) fn is_at_start(&self, rack: u16, id: u64) -> bool {
        let Some(pod) = &self.pod else { return false };
        let port = |packet: &P| SourceRoute::split(packet.path).0;
        self.packets
            .get(&id)
            .is_some_and(|packet| pod.ports_to_agg[usize::from(rack)].contains(&port(packet)))
    }
}
