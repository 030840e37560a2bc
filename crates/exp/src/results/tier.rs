//! Totals of the ports of one tier, in the summary of a run.

use std::collections::BTreeMap;

use rampmeter_sim::fabric::{DropReason, TierStats};
use rampmeter_sim::{Node, PfcStats};
use rampmeter_types::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::topology::names::NamesSpec;

/// Totals of one tier.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Tier {
    /// Name of the tier.
    pub name: String,
    /// Ports in it.
    pub ports: u32,
    /// Bytes sent.
    pub bytes: u64,
    /// Share of the window in which its links were busy: their mean. None of runs without samples.
    pub utilisation: Option<f64>,
    /// The longest queue of any port, at any time. Those of `queues` are of samples only.
    pub queue_max_bytes: u64,
    /// Port and time of that queue.
    pub queue_max_at: Option<QueuePeak>,
    /// Packets that queues marked (ECN), those that had been marked before too; left out if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<u64>,
    /// Counters of trimming (NDP); left out if the ports do not trim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimming: Option<Trimming>,
    /// Pauses of priority flow control; left out where it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pfc: Option<TierPfc>,
    /// Packets dropped, by reason; reasons that did not occur are left out.
    pub drops: BTreeMap<&'static str, u64>,
    /// Data packets dropped.
    pub data_drops: u64,
    /// Bytes dropped.
    pub bytes_dropped: u64,
}

/// Counters of trimming at the ports of a tier.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Trimming {
    /// Packets whose payload was cut off.
    pub trims: u64,
    /// Trimmed packets that were returned to their sender.
    pub returns: u64,
    /// The longest data queue of any port, at any time.
    pub data_queue_max_bytes: u64,
    /// The longest queue of headers and control packets of any port, at any time.
    pub header_queue_max_bytes: u64,
}

/// Pauses of the ports of one tier.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TierPfc {
    /// Pauses sent to its ports.
    pub pauses: u64,
    /// Time for which its ports were paused, all together, in picoseconds.
    pub paused_ps: u64,
    /// The most headroom that packets of any of its links took in the switch at the far end.
    pub headroom_max_bytes: u64,
}

/// Port and time at which a queue was longest.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct QueuePeak {
    /// The end of the link that sends.
    pub from: String,
    /// The end that receives.
    pub to: String,
    /// First time at which the queue was that long.
    pub time_ps: u64,
}

impl Tier {
    pub(crate) fn new(
        tier: TierStats,
        utilisation: Option<f64>,
        pfc: Option<PfcStats>,
        names: &NamesSpec,
    ) -> Self {
        let pfc = pfc.map(|pfc| TierPfc {
            pauses: pfc.pauses,
            paused_ps: pfc.paused.as_ps(),
            headroom_max_bytes: pfc.headroom_max.get(),
        });
        let drops = DropReason::NAMES.into_iter().zip(tier.drops).filter(|(_, n)| *n > 0);
        let peak = |(from, to, at): (Node, Node, Time)| QueuePeak {
            from: names.node(from),
            to: names.node(to),
            time_ps: at.as_ps(),
        };
        Self {
            name: tier.name,
            ports: tier.ports,
            bytes: tier.bytes,
            utilisation,
            queue_max_bytes: tier.queue_max.get(),
            queue_max_at: tier.queue_peak.map(peak),
            marks: (tier.marks > 0).then_some(tier.marks),
            trimming: tier.trimming.map(|t| Trimming {
                trims: t.trims,
                returns: t.returns,
                data_queue_max_bytes: t.data_max.get(),
                header_queue_max_bytes: t.headers_max.get(),
            }),
            pfc,
            drops: drops.collect(),
            data_drops: tier.data_drops,
            bytes_dropped: tier.bytes_dropped,
        }
    }
}
