//! Samples at intervals of links, queues, drops, tenants and the transport's counters.

use rampmeter_metrics::series::{
    CounterSample, DropSample, LinkSample, QueueDistribution, TenantSample, TierSample,
};
use rampmeter_sim::fabric::{DropReason, Fabric};
use rampmeter_types::{Bytes, Header, Span, SwitchProgram, Time};

use crate::warning::{Warning, warning};

/// Maximum number of samples without a warning. More take more time and memory than most flows.
const SAMPLES_MAX: u64 = 1_000_000;

/// Returns a warning if there are many samples until the last arrival of a trace.
pub(crate) fn many_samples_warning(interval: Option<Span>, last: Option<Time>) -> Option<Warning> {
    let (interval, last) = (interval?, last? - Time::ZERO);
    let n = last.as_ps() / interval.as_ps();
    (n > SAMPLES_MAX).then(|| {
        let us = |span: Span| span.as_ps() as f64 / 1e6;
        warning!(
            "many-samples",
            "run.sample-us: {samples} samples are kept in memory, one each {interval_us} us until \
             the last flow arrives at {last_us} us. Use {enough_us} us for {SAMPLES_MAX} samples, \
             or 0 for none",
            samples = n,
            interval_us = us(interval),
            last_us = us(last),
            enough_us = (us(last) / SAMPLES_MAX as f64).ceil(),
        )
    })
}

/// Bytes delivered and sent until an instant.
#[derive(Clone, Debug)]
pub(crate) struct CumulativeSample {
    pub(crate) at: Time,
    /// Message bytes that had reached their receiver.
    pub(crate) fresh_bytes: u64,
    /// Bytes that each tier had sent.
    pub(crate) tiers: Vec<u64>,
    /// Message bytes that had reached their receiver by tenant; none before there are several.
    pub(crate) tenants: Vec<u64>,
}

impl CumulativeSample {
    /// Returns the bytes that one tier had sent; zero in runs without samples.
    pub(crate) fn of_tier(&self, tier: usize) -> u64 {
        self.tiers.get(tier).copied().unwrap_or(0)
    }

    /// Returns the message bytes of one of several tenants that had reached their receiver. Before
    /// there are several all bytes are those of the first.
    pub(crate) fn of_tenant(&self, tenant: u32) -> u64 {
        match self.tenants.get(tenant as usize) {
            Some(&bytes) => bytes,
            None if tenant == 0 && self.tenants.is_empty() => self.fresh_bytes,
            None => 0,
        }
    }
}

/// The samples of a run.
#[derive(Debug)]
pub(crate) struct Samples {
    pub(crate) queues: QueueDistribution,
    pub(crate) tiers: Vec<TierSample>,
    pub(crate) links: Vec<LinkSample>,
    pub(crate) drops: Vec<DropSample>,
    pub(crate) tenants: Vec<TenantSample>,
    pub(crate) transport: Vec<CounterSample>,
    /// Bytes carried until each sample.
    pub(crate) cumulative: Vec<CumulativeSample>,
    /// True if each link is recorded.
    by_link: bool,
    last: Time,
    sent_by_tier: Vec<u64>,
    sent_by_port: Vec<u64>,
    /// Packets that had entered the fabric by the last sample; `None` if it held packets then.
    idle: Option<u64>,
    /// Ports of each tier whose queues are sampled.
    ports_by_tier: Vec<u64>,
}

impl Samples {
    pub(crate) fn new(by_link: bool) -> Self {
        Self {
            queues: QueueDistribution::new(),
            tiers: Vec::new(),
            links: Vec::new(),
            drops: Vec::new(),
            tenants: Vec::new(),
            transport: Vec::new(),
            cumulative: Vec::new(),
            by_link,
            last: Time::ZERO,
            sent_by_tier: Vec::new(),
            sent_by_port: Vec::new(),
            idle: None,
            ports_by_tier: Vec::new(),
        }
    }

    /// Takes a sample; `delivered` has the message bytes that have arrived so far, by tenant.
    pub(crate) fn add_sample<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        fabric: &mut Fabric<H, P>,
        delivered: &[u64],
    ) {
        if delivered.len() > 1 {
            let sample = |(&delivered_bytes, tenant)| TenantSample {
                time_ps: now.as_ps(),
                tenant,
                delivered_bytes,
            };
            self.tenants.extend(delivered.iter().zip(0..).map(sample));
        }
        let interval = now - self.last;
        self.last = now;
        if self.by_link {
            self.take_links(now, interval, fabric);
        }
        self.take_drops(now, fabric);
        // No packet has entered the fabric since it was empty.
        let idle = fabric.idle();
        if idle.is_some() && idle == self.idle {
            self.take_idle_tiers(now, fabric);
        } else {
            self.take_tiers(now, interval, fabric);
        }
        self.idle = idle;
        let (fresh_bytes, tiers) = (delivered.iter().sum(), self.sent_by_tier.clone());
        let tenants = if delivered.len() > 1 { delivered.to_vec() } else { vec![] };
        self.cumulative.push(CumulativeSample { at: now, fresh_bytes, tiers, tenants });
    }

    /// Takes a sample of tiers that have sent nothing since the last sample and have no queues.
    fn take_idle_tiers<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        fabric: &Fabric<H, P>,
    ) {
        if self.ports_by_tier.is_empty() {
            self.ports_by_tier.resize(fabric.tier_names().len(), 0);
            for (tier, _) in fabric.queues() {
                self.ports_by_tier[usize::from(tier)] += 1;
            }
        }
        for (tier, &ports) in fabric.tier_names().into_iter().zip(&self.ports_by_tier) {
            if ports > 0 {
                self.queues.record(tier, Bytes::ZERO, ports);
            }
            self.tiers.push(TierSample {
                time_ps: now.as_ps(),
                tier: tier.to_owned().into(),
                utilisation: 0.0,
                queue_mean_bytes: 0.0,
                queue_max_bytes: 0,
            });
        }
    }

    fn take_tiers<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        interval: Span,
        fabric: &Fabric<H, P>,
    ) {
        let names = fabric.tier_names();
        let mut carried = vec![(0u64, 0u128); names.len()];
        for port in fabric.port_samples() {
            let sum = &mut carried[usize::from(port.tier)];
            let in_transmission = port.rate.bytes_floor(port.busy_until.saturating_since(now));
            sum.0 += port.sent.saturating_sub(in_transmission.get());
            sum.1 += u128::from(port.rate.bytes_floor(interval).get());
        }
        self.sent_by_tier.resize(names.len(), 0);
        let mut queued = vec![(0u64, 0u32, 0u32); names.len()];
        for (tier, bytes) in fabric.queues() {
            let sum = &mut queued[usize::from(tier)];
            *sum = (sum.0 + u64::from(bytes), sum.1.max(bytes), sum.2 + 1);
            self.queues.record(names[usize::from(tier)], Bytes::new(bytes.into()), 1);
        }
        for (i, tier) in names.into_iter().enumerate() {
            let (total, longest, ports) = queued[i];
            // The end of a transmission is that of the rate at its start, which may have changed.
            let sent = carried[i].0.max(self.sent_by_tier[i]);
            let bytes = sent - std::mem::replace(&mut self.sent_by_tier[i], sent);
            self.tiers.push(TierSample {
                time_ps: now.as_ps(),
                tier: tier.to_owned().into(),
                utilisation: bytes as f64 / carried[i].1.max(1) as f64,
                queue_mean_bytes: total as f64 / f64::from(ports.max(1)),
                queue_max_bytes: longest.into(),
            });
        }
    }

    fn take_links<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        interval: Span,
        fabric: &Fabric<H, P>,
    ) {
        let before = std::mem::take(&mut self.sent_by_port);
        for (number, port) in fabric.port_samples().enumerate() {
            let in_transmission = port.rate.bytes_floor(port.busy_until.saturating_since(now));
            let sent = port.sent.saturating_sub(in_transmission.get());
            // The end of a transmission is that of the rate at its start, which may have changed.
            let sent_before = before.get(number).copied().unwrap_or(0);
            let sent = sent.max(sent_before);
            let sent_bytes = sent - sent_before;
            self.sent_by_port.push(sent);
            let capacity = port.rate.bytes_floor(interval).get();
            let id = fabric.port(number as u32);
            self.links.push(LinkSample {
                time_ps: now.as_ps(),
                link: id.link,
                from: id.from.to_string().into(),
                to: id.to.to_string().into(),
                tier: id.tier.to_owned().into(),
                sent_bytes,
                // Both are rounded to bytes.
                utilisation: (sent_bytes as f64 / capacity.max(1) as f64).min(1.0),
                queue_bytes: port.queued.into(),
            });
        }
    }

    /// Takes the drops since the last sample.
    pub(crate) fn take_drops<H: Header, P: SwitchProgram<H>>(
        &mut self,
        now: Time,
        fabric: &mut Fabric<H, P>,
    ) {
        for (number, reason, count) in fabric.take_drops() {
            let id = fabric.port(number);
            self.drops.push(DropSample {
                time_ps: now.as_ps(),
                link: id.link,
                from: id.from.to_string().into(),
                to: id.to.to_string().into(),
                tier: id.tier.to_owned().into(),
                reason: DropReason::NAMES[reason].into(),
                packets: count.packets,
                data_packets: count.data_packets,
                bytes: count.bytes,
            });
        }
    }

    pub(crate) fn take_counters(&mut self, now: Time, counters: &[(&'static str, u64)]) {
        let sample = |&(name, value): &(&'static str, u64)| CounterSample {
            time_ps: now.as_ps(),
            counter: name.into(),
            value,
        };
        self.transport.extend(counters.iter().map(sample));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_samples_are_warned_of() {
        let interval = Some(Span::from_us(10));
        let warning =
            many_samples_warning(interval, Some(Time::ZERO + Span::from_us(100_000_000))).unwrap();
        let expected = "run.sample-us: 10000000 samples are kept in memory, one each 10 us until \
                        the last flow arrives at 100000000 us. Use 100 us for 1000000 samples, or \
                        0 for none";
        assert_eq!(warning.text, expected);
        assert_eq!(
            many_samples_warning(interval, Some(Time::ZERO + Span::from_us(10_000_000))),
            None
        );
        assert_eq!(many_samples_warning(interval, None), None);
        assert_eq!(many_samples_warning(None, Some(Time::ZERO + Span::from_us(100_000_000))), None);
    }
}
