//! Rows of hosts that compute and take part in collectives, one operation after the other.

use crate::trace::{Extra, RawRow};

/// A collective operation of a file. The vector is the larger of what a host has at the start and
/// at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Collective {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
}

/// Rows in the making, and what the next operation of each host waits for.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    pub(super) rows: Vec<RawRow>,
    ready: Vec<Vec<u64>>,
    /// Line of the file that rows are of.
    pub(super) place: u64,
}

impl Schedule {
    pub(super) fn new(n_hosts: usize) -> Self {
        Self { rows: Vec::new(), ready: vec![Vec::new(); n_hosts], place: 0 }
    }

    /// Lets a host compute after all before.
    pub(super) fn compute(&mut self, host: usize, ns: u64) {
        if ns > 0 {
            let after = std::mem::take(&mut self.ready[host]);
            let row = self.push(host, host, 0, after, ns.saturating_mul(1_000));
            self.ready[host] = vec![row];
        }
    }

    /// Lets hosts take part in a collective, each after all before; returns what each receives.
    pub(super) fn collective(
        &mut self,
        kind: Collective,
        hosts: &[usize],
        bytes: u64,
    ) -> Vec<(usize, Vec<u64>)> {
        let n = hosts.len();
        let mut received: Vec<(usize, Vec<u64>)> =
            hosts.iter().map(|&host| (host, Vec::new())).collect();
        if n < 2 || bytes == 0 {
            return received;
        }
        let part = |idx: usize| {
            let (n, idx) = (n as u64, (idx % n) as u64);
            (bytes / n + u64::from(idx < bytes % n)).max(1)
        };
        let n_steps = match kind {
            Collective::AllReduce => 2 * (n - 1),
            Collective::AllGather | Collective::ReduceScatter => n - 1,
            Collective::AllToAll => {
                for by in 1..n {
                    for src in 0..n {
                        let dst = (src + by) % n;
                        let after = self.ready[hosts[src]].clone();
                        let row = self.push(hosts[src], hosts[dst], part(dst), after, 0);
                        received[dst].1.push(row);
                    }
                }
                return received;
            }
        };
        let mut before: Vec<Option<u64>> = vec![None; n];
        for step in 0..n_steps {
            let mut sent = vec![None; n];
            for src in 0..n {
                let dst = (src + 1) % n;
                let mut after = self.ready[hosts[src]].clone();
                after.extend(before[src]);
                let row = self.push(hosts[src], hosts[dst], part(src + 2 * n - step), after, 0);
                received[dst].1.push(row);
                sent[dst] = Some(row);
            }
            before = sent;
        }
        received
    }

    /// Lets a host wait for rows before its next operation.
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
        self.rows.push(RawRow {
            place: self.place,
            arrival_ps: 0,
            src: src as u64,
            dst: dst as u64,
            size_bytes: size,
            fct_ps: None,
            ideal_ps: None,
            extra: Extra { after, compute_ps: ps, ..Extra::default() },
        });
        self.rows.len() as u64 - 1
    }
}
