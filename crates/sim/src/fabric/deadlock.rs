//! Deadlocks of priority flow control: ports that pause one another in a circle.
//!
//! An ingress that pauses its link is *stuck* if it can not resume it. The search begins with all
//! that pause. Packets that wait for a port which is not stuck will depart. An ingress that can
//! resume its link after their departure is not stuck, and the search repeats without it. Every
//! ingress that remains holds packets for a paused port whose ingress remains too, so these ports
//! form circles. Their pauses never end, because nothing but departures ends a pause.

use std::collections::{BTreeMap, BTreeSet};

use rampmeter_types::{Header, SwitchProgram, Time};

use super::Fabric;
use super::config::PfcConfig;

/// Ports that pause one another in a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// The instant at which the last of them was paused.
    pub since: Time,
    /// The paused ports, by number: each holds packets for the next, the last for the first.
    pub ports: Vec<u32>,
}

/// Waiting bytes by the ingress that they are charged to and the port that they wait for.
type WaitingBytes = BTreeMap<(u32, u32), u64>;

impl<H: Header, P: SwitchProgram<H>> Fabric<H, P> {
    /// Returns the deadlocks at `now`; none without priority flow control.
    pub fn find_deadlocks(&self, now: Time) -> Vec<Deadlock> {
        let Some(config) = self.pfc.config else { return Vec::new() };
        let ingresses = self.n_interfaces..self.ports.len() as u32;
        let mut stuck: BTreeSet<u32> =
            ingresses.filter(|&port| self.pfc.gauges[port as usize].is_pausing).collect();
        let waiting = self.waiting_for(&stuck, &config);
        loop {
            let clear = self.clear(&stuck, &waiting, &config);
            if clear.is_empty() {
                break;
            }
            stuck.retain(|ingress| !clear.contains(ingress));
        }
        self.circles(&stuck, &waiting, now)
    }

    /// Returns the bytes that wait for the ports that `pausing` ingresses pause.
    fn waiting_for(&self, pausing: &BTreeSet<u32>, config: &PfcConfig) -> WaitingBytes {
        let mut waiting = WaitingBytes::new();
        for &ingress in pausing {
            let egress = self.opposite[ingress as usize];
            if egress < self.n_interfaces {
                continue;
            }
            self.queues[egress as usize].for_each(&self.pool, |handle| {
                let bytes = self.pool.get(handle).wire_bytes.max(self.config.buffer_cell);
                if let Some(by) = self.ingress_port(handle, config) {
                    *waiting.entry((by, egress)).or_default() += u64::from(bytes);
                }
            });
        }
        waiting
    }

    /// Returns the `stuck` ingresses that resume their links when all packets have departed that
    /// wait for other ports than theirs.
    fn clear(
        &self,
        stuck: &BTreeSet<u32>,
        waiting: &WaitingBytes,
        config: &PfcConfig,
    ) -> BTreeSet<u32> {
        let mut held: BTreeMap<u32, u64> = BTreeMap::new();
        for (&(ingress, egress), &bytes) in waiting {
            if stuck.contains(&self.opposite[egress as usize]) {
                *held.entry(ingress).or_default() += bytes;
            }
        }
        // Departures free headroom first.
        let remains = |ingress: u32, held: u64| {
            let gauge = &self.pfc.gauges[ingress as usize];
            let (shared, headroom) = (u64::from(gauge.shared), u64::from(gauge.headroom));
            let departing = (shared + headroom).saturating_sub(held);
            let headroom = headroom.saturating_sub(departing);
            (held - headroom, headroom, departing)
        };
        let mut used: BTreeMap<u32, u64> = BTreeMap::new();
        for (&ingress, &held) in &held {
            let switch = self.ports[ingress as usize].switch;
            *used.entry(switch).or_default() += remains(ingress, held).0;
        }
        let resumes = |ingress: &u32| {
            let held = held.get(ingress).copied().unwrap_or(0);
            let (shared, headroom, departing) = remains(*ingress, held);
            let switch = self.ports[*ingress as usize].switch;
            let used = used.get(&switch).copied().unwrap_or(0);
            let free = self.pfc.memory[switch as usize].1.saturating_sub(used);
            // A gauge is read when one of its packets departs.
            held == 0 || departing > 0 && config.is_clear(shared, headroom, free)
        };
        stuck.iter().copied().filter(resumes).collect()
    }

    /// Returns the circles of paused ports among `stuck` ingresses.
    fn circles(&self, stuck: &BTreeSet<u32>, waiting: &WaitingBytes, now: Time) -> Vec<Deadlock> {
        let next = |ingress: u32| {
            let egresses = waiting.range((ingress, 0)..=(ingress, u32::MAX));
            let mut ends = egresses.map(|(&(_, egress), _)| self.opposite[egress as usize]);
            ends.find(|end| stuck.contains(end))
        };
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for &start in stuck {
            let mut walk = Vec::new();
            let mut at = Some(start);
            while let Some(ingress) = at.filter(|&ingress| seen.insert(ingress)) {
                walk.push(ingress);
                at = next(ingress);
            }
            // A walk that ends at an ingress of an earlier one has no new circle.
            let first = walk.iter().position(|&ingress| Some(ingress) == at);
            let Some(first) = first else { continue };
            let port = |&ingress: &u32| self.opposite[ingress as usize];
            let mut ports: Vec<u32> = walk[first..].iter().map(port).collect();
            let lowest = (0..ports.len()).min_by_key(|&i| ports[i]).unwrap_or(0);
            ports.rotate_left(lowest);
            let since = |&port: &u32| match self.ports[port as usize].paused_priorities {
                // The pause has not reached it yet.
                0 => now,
                _ => self.pfc.paused_since[port as usize],
            };
            let since = ports.iter().map(since).max().unwrap_or(now);
            circles.push(Deadlock { since, ports });
        }
        circles
    }

    /// Notes the deadlocks at the end of a run, once.
    pub(crate) fn note_deadlocks(&mut self, now: Time) {
        if self.pfc.deadlocks.is_none() {
            self.pfc.deadlocks = Some(self.find_deadlocks(now));
        }
    }

    /// The deadlocks at the end of the run; none before it.
    pub fn deadlocks(&self) -> &[Deadlock] {
        self.pfc.deadlocks.as_deref().unwrap_or_default()
    }
}
