//! Faults: packets lost, doubled and delayed on links, and links and switches that fail.

use rampmeter_types::{Purpose, Rng, Span, Time};

use crate::topo::{LinkChange, Node, Routes, Target, Topology};

/// Faults of a link for the packets it carries, each with the given probability.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct LinkFault {
    /// A packet is lost.
    pub loss: f64,
    /// A packet arrives twice.
    pub duplicate: f64,
    /// A packet is held back, so that later ones overtake it.
    pub reorder: f64,
    /// The longest time a packet, or its twin, is held back.
    pub delay_max: Span,
}

/// A failure and its repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// Link or node that fails.
    pub target: Target,
    /// Start. Packets that wait for the link or are on it are lost.
    pub from: Time,
    /// Time of the repair; [`Time::NEVER`] if there is none.
    pub until: Time,
}

/// The faults of a run.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FaultSpec {
    /// Faults of every link.
    pub every_link: LinkFault,
    /// Faults of single links, instead of those of every link.
    pub links: Vec<(u32, LinkFault)>,
    /// Failures and repairs.
    pub outages: Vec<Outage>,
    /// Links that become faster, slower, longer or shorter. Routing stays as it is.
    pub changes: Vec<LinkChange>,
    /// Time that a link must have been down, or up again, until switches route by it: the time of
    /// detection and convergence. Until then packets that are routed to a failed link are lost, and
    /// a failure that is repaired sooner changes no route.
    pub rerouting: Span,
}

impl FaultSpec {
    /// Returns true if links fail or change during the run.
    pub fn has_events(&self) -> bool {
        !self.outages.is_empty() || !self.changes.is_empty()
    }
}

/// Treatment of one packet on a link.
#[derive(Clone, Copy, Debug)]
pub(super) struct FaultOutcome {
    pub(super) lost: bool,
    pub(super) doubled: bool,
    pub(super) delay: Span,
    pub(super) twin_delay: Span,
}

#[derive(Debug)]
pub(super) struct Faults {
    links: Vec<LinkFault>,
    link_of: Vec<u32>,
    rngs: Vec<Rng>,
    /// Failures and repairs in order of time: (when, outage, whether it is the repair).
    changes: Vec<(Time, usize, bool)>,
    n_applied: usize,
    /// Number of changes that routing has followed.
    n_routed: usize,
    rerouting: Span,
    outages: Vec<Outage>,
    /// Changes of links in order of time, and how many have been made.
    link_changes: Vec<LinkChange>,
    n_changed: usize,
    /// Number of outages that hold each link down.
    n_down: Vec<u32>,
    /// Time at which each link last failed or was repaired.
    changed_at: Vec<Time>,
    /// True for each link that routing uses.
    routed: Vec<bool>,
    /// Links that routing does not use.
    n_avoided: usize,
    failed_at: Vec<Option<Time>>,
}

impl Faults {
    pub(super) fn new(spec: FaultSpec, topology: &Topology, routes: &Routes, seed: u64) -> Self {
        let mut links = vec![spec.every_link; topology.links().len()];
        for (link, fault) in spec.links {
            links[link as usize] = fault;
        }
        let mut changes = Vec::new();
        for (i, outage) in spec.outages.iter().enumerate() {
            changes.push((outage.from, i, false));
            if outage.until < Time::NEVER {
                changes.push((outage.until, i, true));
            }
        }
        changes.sort();
        let mut link_changes = spec.changes;
        link_changes.sort_by_key(|change| change.at);
        let n_ports = routes.n_ports();
        Self {
            link_of: (0..n_ports as u32).map(|p| routes.end(p).0).collect(),
            rngs: (0..n_ports as u64).map(|p| Rng::new(seed, p, Purpose::Fault)).collect(),
            n_down: vec![0; links.len()],
            changed_at: vec![Time::ZERO; links.len()],
            routed: vec![true; links.len()],
            n_avoided: 0,
            failed_at: vec![None; n_ports],
            outages: spec.outages,
            link_changes,
            n_changed: 0,
            n_applied: 0,
            n_routed: 0,
            rerouting: spec.rerouting,
            links,
            changes,
        }
    }

    /// Returns the faults of a partition: none.
    pub(super) fn none() -> Self {
        Self {
            links: Vec::new(),
            link_of: Vec::new(),
            rngs: Vec::new(),
            changes: Vec::new(),
            n_applied: 0,
            n_routed: 0,
            rerouting: Span::ZERO,
            outages: Vec::new(),
            link_changes: Vec::new(),
            n_changed: 0,
            n_down: Vec::new(),
            changed_at: Vec::new(),
            routed: Vec::new(),
            n_avoided: 0,
            failed_at: Vec::new(),
        }
    }

    /// Returns true if links have no faults, never fail, and never change.
    pub(super) fn is_none(&self) -> bool {
        let are_perfect = self.links.iter().all(|link| *link == LinkFault::default());
        are_perfect && self.outages.is_empty() && self.link_changes.is_empty()
    }

    /// Returns for each port true if anything can ever happen on its link.
    pub(super) fn faulty_ports(&self, routes: &Routes) -> Vec<bool> {
        let fails = !self.outages.is_empty();
        let faulty = |p| self.links[routes.end(p).0 as usize] != LinkFault::default() || fails;
        (0..routes.n_ports() as u32).map(faulty).collect()
    }

    pub(super) fn draw(&mut self, port: u32) -> FaultOutcome {
        let fault = self.links[self.link_of[port as usize] as usize];
        let rng = &mut self.rngs[port as usize];
        let mut hold = |p: f64| {
            if p > 0.0 && rng.bernoulli(p) {
                let most = fault.delay_max.as_ps().max(1) as usize;
                Some(Span::from_ps(1 + rng.uniform_below(most) as u64))
            } else {
                None
            }
        };
        let delay = hold(fault.reorder).unwrap_or(Span::ZERO);
        let twin = hold(fault.duplicate);
        let lost = fault.loss > 0.0 && rng.bernoulli(fault.loss);
        FaultOutcome {
            lost,
            doubled: twin.is_some(),
            delay,
            twin_delay: twin.unwrap_or(Span::ZERO),
        }
    }

    /// Returns the time at which the next link changes, or routing follows a change.
    pub(super) fn next_change(&self) -> Option<Time> {
        let change = self.changes.get(self.n_applied).map(|c| c.0);
        let follow = self.changes.get(self.n_routed).map(|c| c.0.saturating_add(self.rerouting));
        let link = self.link_changes.get(self.n_changed).map(|change| change.at);
        change.into_iter().chain(follow).chain(link).min()
    }

    /// Returns all changes of links.
    pub(super) fn link_changes(&self) -> &[LinkChange] {
        &self.link_changes
    }

    /// Returns the next change of a link that is due at `now`.
    pub(super) fn pop_link_change(&mut self, now: Time) -> Option<LinkChange> {
        let change = *self.link_changes.get(self.n_changed).filter(|change| change.at <= now)?;
        self.n_changed += 1;
        Some(change)
    }

    /// Returns the links that change state at `now`, with their new state.
    pub(super) fn take_changed_links(
        &mut self,
        now: Time,
        topology: &Topology,
    ) -> Vec<(u32, bool)> {
        let mut changed = Vec::new();
        while let Some(&(time, outage, repaired)) = self.changes.get(self.n_applied) {
            if time > now {
                break;
            }
            self.n_applied += 1;
            for link in links_of(self.outages[outage].target, topology) {
                let down = &mut self.n_down[link as usize];
                let was_up = *down == 0;
                *down = if repaired { *down - 1 } else { *down + 1 };
                if was_up != (*down == 0) {
                    self.changed_at[link as usize] = now;
                }
                changed.push((link, *down == 0));
            }
        }
        changed
    }

    /// Applies outages that are old enough to routing. Returns true if a route may change.
    pub(super) fn update_routing(&mut self, now: Time, topology: &Topology) -> bool {
        let mut differs = false;
        while let Some(&(time, outage, _)) = self.changes.get(self.n_routed) {
            if time.saturating_add(self.rerouting) > now {
                break;
            }
            self.n_routed += 1;
            for link in links_of(self.outages[outage].target, topology) {
                let link = link as usize;
                let is_up = self.n_down[link] == 0;
                let is_stable = self.changed_at[link].saturating_add(self.rerouting) <= now;
                if is_stable && self.routed[link] != is_up {
                    self.routed[link] = is_up;
                    differs = true;
                    match is_up {
                        true => self.n_avoided -= 1,
                        false => self.n_avoided += 1,
                    }
                }
            }
        }
        differs
    }

    pub(super) fn arbiters_restarting(&self, now: Time) -> Vec<u32> {
        let restarting = |target| match target {
            Target::Arbiter(arbiter) => Some(arbiter),
            _ => None,
        };
        self.repaired(now).filter_map(restarting).collect()
    }

    pub(super) fn switches_restarting(&self, now: Time) -> Vec<u32> {
        let restarting = |target| match target {
            Target::Switch(switch) => Some(switch),
            _ => None,
        };
        self.repaired(now).filter_map(restarting).collect()
    }

    /// Iterates over the targets of outages that end now.
    fn repaired(&self, now: Time) -> impl Iterator<Item = Target> {
        let start = self.changes.partition_point(|&(at, ..)| at < now);
        let of_now = self.changes[start..].iter().take_while(move |&&(at, ..)| at == now);
        of_now.filter(|&&(.., is_repair)| is_repair).map(|&(_, i, _)| self.outages[i].target)
    }

    /// Returns true if routing avoids any link.
    pub(super) fn avoids_links(&self) -> bool {
        self.n_avoided > 0
    }

    /// Returns true if routing uses a link.
    pub(super) fn is_routed(&self, link: u32) -> bool {
        self.routed[link as usize]
    }

    pub(super) fn mark_failed(&mut self, port: u32, now: Time) {
        self.failed_at[port as usize] = Some(now);
    }

    /// Returns true if the link of `port` failed in the `span` before `now`.
    pub(super) fn failed_within(&self, port: u32, now: Time, span: Span) -> bool {
        self.failed_at[port as usize].is_some_and(|at| now.saturating_since(at) <= span)
    }
}

fn links_of(target: Target, topology: &Topology) -> Vec<u32> {
    match target {
        Target::Link(link) => vec![link],
        Target::Host(host) => topology.links_of(Node::Host(host)),
        Target::Arbiter(arbiter) => topology.links_of(Node::Arbiter(arbiter)),
        Target::Switch(switch) => topology.links_of(Node::Switch(switch)),
    }
}
