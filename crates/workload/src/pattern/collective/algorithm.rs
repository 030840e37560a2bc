//! Senders, receivers and sizes of the flows of a round, by algorithm. Each function adds the flows
//! and returns the bytes from which bandwidths are computed.

use rampmeter_types::{Bytes, Rng, Span};

use super::{Operation, RoundBuilder, part};

impl RoundBuilder<'_> {
    /// Sends around a ring: in step `s` host `i` sends part `i - s`, which it received in step `s -
    /// 1`.
    pub(super) fn ring(&mut self) -> Bytes {
        let (n, chunks, size) =
            (self.collective.hosts.count(), self.collective.chunks, self.collective.size);
        let steps =
            if self.collective.operation == Operation::AllReduce { 2 * (n - 1) } else { n - 1 };
        let mut before = Vec::new();
        for step in 0..steps {
            let mut sent = Vec::with_capacity((n * chunks) as usize);
            for host in 0..n {
                let piece = part(size.get(), n, (host + 2 * n - step) % n);
                for chunk in 0..chunks {
                    let from = ((host + n - 1) % n * chunks + chunk) as usize;
                    let after = before.get(from..=from).unwrap_or_default();
                    let bytes = part(piece, chunks, chunk);
                    sent.push(self.send(host, (host + 1) % n, bytes, after));
                }
            }
            before = sent;
        }
        size
    }

    /// Up: a host sends once it has received from all its children. Down: it sends once it has
    /// received from its parent; the root sends once it has received from all its children.
    pub(super) fn tree(&mut self) -> Bytes {
        let (n, chunks, size) =
            (self.collective.hosts.count(), self.collective.chunks, self.collective.size);
        let levels = self.collective.levels();
        for chunk in 0..chunks {
            let bytes = part(size.get(), chunks, chunk);
            let mut arrived: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
            let pairs = |level: u32| {
                let far = 1 << level;
                (0..n).step_by(2 * far).map(move |low| (low, low + far as u32))
            };
            if self.collective.operation == Operation::AllReduce {
                for level in 0..levels {
                    for (parent, child) in pairs(level).filter(|&(_, child)| child < n) {
                        let flow = self.send(child, parent, bytes, &arrived[child as usize]);
                        arrived[parent as usize].push(flow);
                    }
                }
            }
            for level in (0..levels).rev() {
                for (parent, child) in pairs(level).filter(|&(_, child)| child < n) {
                    let flow = self.send(parent, child, bytes, &arrived[parent as usize]);
                    // The data from its children are in the data that it receives from its parent.
                    arrived[child as usize] = vec![flow];
                }
            }
        }
        size
    }

    /// Adds halving and doubling: a host sends when it has received all messages of the steps
    /// before.
    pub(super) fn halving_doubling(&mut self) -> Bytes {
        let (n, size) = (self.collective.hosts.count(), self.collective.size);
        let levels = self.collective.levels();
        let bytes = |from: u32, to: u32| (from..to).map(|i| part(size.get(), n, i)).sum();
        let mut arrived: Vec<Vec<u32>> = vec![Vec::new(); n as usize];
        let operation = self.collective.operation;
        let halving = (0..levels).rev().map(|level| (1 << level, true));
        let doubling = (0..levels).map(|level| (1 << level, false));
        let halving = halving.filter(|_| operation != Operation::AllGather);
        let doubling = doubling.filter(|_| operation != Operation::ReduceScatter);
        for (far, is_halving) in halving.chain(doubling) {
            let mut sent = Vec::with_capacity(n as usize);
            for host in 0..n {
                let partner = host ^ far;
                // While halving, a host sends the half that its partner needs; while doubling, it
                // sends all that it has.
                let owner = if is_halving { partner } else { host };
                let first = owner / far * far;
                let after = &arrived[host as usize];
                sent.push((partner, self.send(host, partner, bytes(first, first + far), after)));
            }
            sent.into_iter().for_each(|(partner, flow)| arrived[partner as usize].push(flow));
        }
        size
    }

    /// Adds a chain: each host forwards each chunk as soon as it has received it.
    pub(super) fn chain(&mut self) -> Bytes {
        let (n, chunks, size) =
            (self.collective.hosts.count(), self.collective.chunks, self.collective.size);
        for chunk in 0..chunks {
            let mut before = None;
            for host in 0..n - 1 {
                let bytes = part(size.get(), chunks, chunk);
                before = Some(self.send(host, host + 1, bytes, before.as_slice()));
            }
        }
        size
    }

    /// Each host but the last computes on each chunk, one after the other, and forwards it.
    pub(super) fn pipeline(&mut self) -> Bytes {
        let (n, chunks, size) =
            (self.collective.hosts.count(), self.collective.chunks, self.collective.size);
        let mut computed: Vec<Option<u32>> = vec![None; n as usize];
        for chunk in 0..chunks {
            let mut received = None;
            for host in 0..n - 1 {
                let before = computed[host as usize].into_iter().chain(received);
                let computation = self.compute(host, &before.collect::<Vec<_>>());
                computed[host as usize] = Some(computation);
                let (bytes, after) = (part(size.get(), chunks, chunk), [computation]);
                received = Some(self.send_after(host, host + 1, bytes, &after, Span::ZERO));
            }
        }
        size
    }

    /// Adds all flows at once; each host begins with the next one and ends with the one before it.
    pub(super) fn direct(&mut self, rng: &mut Rng) -> Bytes {
        let n = self.collective.hosts.count();
        let demands = self.demands(rng);
        for by in 1..n {
            for src in 0..n {
                let dst = (src + by) % n;
                let bytes = demands[src as usize][dst as usize];
                if bytes > 0 {
                    self.send(src, dst, bytes, &[]);
                }
            }
        }
        if self.collective.operation == Operation::AllToAll {
            return self.collective.size;
        }
        let others = |(src, row): (usize, &Vec<u64>)| -> u64 {
            (0..).zip(row).filter(|&(dst, _)| dst != src).map(|(_, bytes)| bytes).sum()
        };
        Bytes::new(demands.iter().enumerate().map(others).max().unwrap_or(0))
    }
}
