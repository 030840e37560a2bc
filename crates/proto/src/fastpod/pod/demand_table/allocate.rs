//! Allocation of the next slot by an arbiter (§3.1, §3.4): a matching by Fastpass's allocator, and
//! an aggregation switch for each pair. In a pod alone without failures this is Fastpass's edge
//! colouring. Otherwise a pair is matched only if there is a path for it.

use super::DemandTable;
use crate::fastpass::allocate::Allocation;
use crate::fastpod::config::Fastpod;
use crate::fastpod::slot_grant::SlotGrant;
use crate::fastpod::wire::POD_FLAG;

/// Path of a pair: its number among those of the slot, and its core switch.
type Path = (u16, Option<u16>);

impl DemandTable {
    /// Grants the next slot, when slot `now` is decided.
    pub(crate) fn allocate_slot(&mut self, now: u64, fastpod: &Fastpod) -> Vec<SlotGrant> {
        if let Some(failures) = &mut self.failures {
            failures.evaluate_reports(now);
            let is_plain =
                failures.has_no_failures() && self.clients.len() == usize::from(self.n_hosts);
            if !is_plain && (self.n_requested > 0 || failures.has_convicted()) {
                return self.allocate_with_paths(now, fastpod);
            }
        }
        if self.n_requested == 0 {
            return Vec::new();
        }
        self.allocations.clear();
        self.allocator.allocate(&mut self.allocations);
        self.n_requested -= self.allocations.len() as u64;
        self.allocations.sort_unstable();
        let given = |a: &Allocation, agg| SlotGrant {
            src: a.src,
            dst: a.dst,
            named_dst: a.dst,
            agg,
            is_probe: false,
        };
        if fastpod.pods.is_none() {
            return self.allocations.iter().map(|a| given(a, 0)).collect();
        }
        let timing = fastpod.timing(self.pod);
        self.racks.clear();
        let racks = self.allocations.iter().map(|a| (timing.leaf(a.src), timing.leaf(a.dst)));
        self.racks.extend(racks);
        // No rack sends or receives more than it has hosts, and there are as many switches above.
        let (colours, _) = self.colouring.colour(timing.n_racks(), &self.racks);
        let pairs = self.allocations.iter().zip(colours);
        pairs.map(|(a, &colour)| given(a, colour as u8)).collect()
    }

    /// Allocates likewise if pairs are matched as far as there are paths for them. Ends that are
    /// unresponsive get no slots, broken links no pairs, and core switches no more than they have
    /// space for.
    fn allocate_with_paths(&mut self, now: u64, fastpod: &Fastpod) -> Vec<SlotGrant> {
        let mut plan = self.probe(now);
        let is_probing = |a: Allocation| plan.iter().any(|p| p.src == a.src || p.dst == a.dst);
        let mut paths: Vec<Path> = Vec::new();
        let mut is_taken = vec![false; self.clients.len() - usize::from(self.n_hosts)];
        let mut allocations = std::mem::take(&mut self.allocations);
        let mut allocator = std::mem::take(&mut self.allocator);
        allocations.clear();
        allocator.allocate_if(&mut allocations, |a| {
            let path = if is_probing(a) { None } else { self.path(now, a, &mut is_taken) };
            paths.extend(path);
            path.is_some()
        });
        self.n_requested -= allocations.len() as u64;
        let pairs = allocations.iter().zip(&paths);
        plan.extend(pairs.map(|(a, &path)| self.make_grant(a, path, fastpod)));
        (self.allocations, self.allocator) = (allocations, allocator);
        plan.sort_unstable_by_key(|given| given.src);
        plan
    }

    /// Begins a slot with the probes that are due.
    fn probe(&mut self, now: u64) -> Vec<SlotGrant> {
        let mut plan: Vec<SlotGrant> = Vec::new();
        let Some(failures) = &mut self.failures else { return plan };
        failures.paths.clear();
        for probe in failures.probes(now) {
            let way = failures.route_of(probe.src, probe.dst, Some(probe.agg));
            let is_busy = |p: &SlotGrant| p.src == probe.src || p.dst == probe.dst;
            if failures.paths.is_clear(way) && !plan.iter().any(is_busy) {
                failures.paths.probe(way);
                failures.on_probe(now, &probe);
                plan.push(probe);
            }
        }
        plan
    }

    /// Returns a path for a pair, next to those that the slot has. `is_taken` is true for core
    /// switches that receive already.
    fn path(&mut self, now: u64, a: Allocation, is_taken: &mut [bool]) -> Option<Path> {
        let n_ends = self.len();
        let failures = self.failures.as_mut()?;
        if a.dst < n_ends {
            let way = failures.route_of(a.src, a.dst, None);
            // Cells for an unresponsive host would fill core switches: these send them all the
            // same.
            let may = failures.may_schedule(now, a.src, a.dst)
                || a.src >= self.n_hosts && !failures.is_unresponsive(a.src);
            let number = if may { failures.paths.place(way) } else { None };
            return number.map(|number| (number, None));
        }
        let (pod, n) = (a.dst - n_ends, n_ends - self.n_hosts);
        if failures.is_unresponsive(a.src) {
            return None;
        }
        for core in (0..n).map(|i| (self.next_core + i) % n) {
            let end = self.n_hosts + core;
            let is_open = self.clients[usize::from(end)].open_pods >> pod & 1 == 1;
            let taken = &mut is_taken[usize::from(core)];
            if !is_open || failures.is_unresponsive(end) || *taken {
                continue;
            }
            if let Some(number) = failures.paths.place(failures.route_of(a.src, end, None)) {
                (*taken, self.next_core) = (true, (core + 1) % n);
                return Some((number, Some(core)));
            }
        }
        None
    }

    fn make_grant(&self, a: &Allocation, (number, core): Path, fastpod: &Fastpod) -> SlotGrant {
        let first = fastpod.hosts_of(self.pod).start as u16;
        match (core, &self.failures) {
            (Some(core), _) => {
                let (dst, named_dst) = (self.n_hosts + core, POD_FLAG | (a.dst - self.len()));
                SlotGrant { src: a.src, dst, named_dst, agg: core as u8, is_probe: false }
            }
            (None, failures) => {
                let agg = failures.as_ref().map_or(0, |failures| failures.paths.agg(number));
                SlotGrant { src: a.src, dst: a.dst, named_dst: first + a.dst, agg, is_probe: false }
            }
        }
    }
}
