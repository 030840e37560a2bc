//! Rows of hosts that compute and participate in collectives, one operation after the other.

pub(super) use super::collective::Collective;
use crate::graph::Round;
use crate::trace::{OptionalFields, RawRow};

/// Rows that a machine of 16 GB can hold.
pub(super) const ROWS_MAX: usize = 20_000_000;

/// Rows in the making, and the dependencies of the next operation of each host.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) rows: Vec<RawRow>,
    pub(super) rounds: Vec<Round>,
    ready: Vec<Vec<u64>>,
    /// Line of the file from which rows are read.
    pub(super) place: u64,
}

impl Schedule {
    pub(super) fn new(n_hosts: usize) -> Self {
        Self { rows: Vec::new(), rounds: Vec::new(), ready: vec![Vec::new(); n_hosts], place: 0 }
    }

    /// Adds a computation of a host after all its earlier operations.
    pub(super) fn compute(&mut self, host: usize, ns: u64) {
        if ns > 0 {
            let after = std::mem::take(&mut self.ready[host]);
            let row = self.push(host, host, 0, after, ns.saturating_mul(1_000));
            self.ready[host] = vec![row];
        }
    }

    /// Adds a collective of hosts, for each after its earlier operations. Returns the rows that
    /// each receives.
    pub(super) fn collective(
        &mut self,
        kind: Collective,
        hosts: &[usize],
        bytes: u64,
    ) -> Vec<(usize, Vec<u64>)> {
        let mut received: Vec<(usize, Vec<u64>)> =
            hosts.iter().map(|&host| (host, Vec::new())).collect();
        if bytes == 0 {
            return received;
        }
        let first = self.rows.len() as u64;
        for step in kind.steps(hosts.len(), bytes) {
            let mut after = self.ready[hosts[step.src]].clone();
            after.extend(step.after.iter().map(|&at| first + at as u64));
            let row = self.push(hosts[step.src], hosts[step.dst], step.bytes, after, 0);
            received[step.dst].1.push(row);
        }
        let rows = first as u32..self.rows.len() as u32;
        let number = self.rounds.len() as u32;
        if !rows.is_empty() {
            self.rounds.extend(kind.round(hosts, bytes, rows, number));
        }
        received
    }

    /// Makes the next operation of a host depend on rows.
    pub(super) fn wait(&mut self, host: usize, mut rows: Vec<u64>) {
        if rows.is_empty() {
            return;
        }
        rows.append(&mut self.ready[host]);
        rows.sort_unstable();
        rows.dedup();
        let row = self.push(host, host, 0, rows, 0);
        self.ready[host] = vec![row];
    }

    fn push(&mut self, src: usize, dst: usize, size: u64, after: Vec<u64>, ps: u64) -> u64 {
        self.rows.push(row(self.place, [src, dst], size, after, ps));
        self.rows.len() as u64 - 1
    }
}

/// Adds a row that starts `ps` after its dependencies: a message, or a computation if it has no
/// bytes.
pub(super) fn row(
    place: u64,
    [src, dst]: [usize; 2],
    size_bytes: u64,
    after: Vec<u64>,
    compute_ps: u64,
) -> RawRow {
    RawRow {
        place,
        arrival_ps: 0,
        src: src as u64,
        dst: dst as u64,
        size_bytes,
        fct_ps: None,
        ideal_ps: None,
        extra: OptionalFields { after, compute_ps, ..OptionalFields::default() },
    }
}
