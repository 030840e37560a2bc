//! Layers of a model, and groups of hosts.

use crate::import::idle_hosts;
use crate::import::line::{Line, count};
use crate::import::schedule::Collective;
use crate::trace::TraceError;

/// A policy of parallelism: the order of a training step, as ASTRA-sim's `Workload` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    /// `SimAI` and AICB. Backward: gradient of the input and its collective, for which the layer
    /// waits, then that of the weights. The bytes of an all-gather are those of its result.
    Transformer,
    /// Backward: gradient of the input; its collective runs during the gradient of the weights.
    /// Layer 0 has no collective of its input.
    DataModel,
    /// The order of `DataModel`; hosts of a data-parallel group are neighbours.
    ModelData,
    /// The order of `DataModel` with one group, without collectives of weights.
    Model,
    /// Collectives of weights alone. Backward: gradient of the weights, then of the input.
    Data,
    /// The first layer's collective of weights alone, without computations.
    Micro,
    /// Forward all-to-alls run in the background. The last of the bottom layers waits for that of
    /// layer 0. Backward as `Data`; the collective of layer 0's input runs during the gradients of
    /// the bottom layers.
    Dlrm {
        /// True if layer 0 waits for the collective of its input.
        waits: bool,
    },
    /// Forward alone.
    Inference,
}

impl Policy {
    pub(super) fn named(name: &str) -> Option<Self> {
        POLICIES.iter().find(|(known, _)| *known == name).map(|&(_, policy)| policy)
    }

    /// Returns true if groups follow from `model_parallel_NPU_group`.
    fn has_groups(self) -> bool {
        matches!(self, Self::Transformer | Self::DataModel | Self::ModelData)
    }

    /// Returns the vector of a collective among `n` hosts: the larger of the bytes that a host has
    /// at the start and at the end. ASTRA-sim's all-gathers name the former.
    pub(super) fn vector(self, collective: Collective, n: usize, bytes: u64) -> u64 {
        match collective {
            Collective::AllGather if self != Self::Transformer => bytes.saturating_mul(n as u64),
            _ => bytes,
        }
    }
}

/// The policy, and sizes of groups.
pub(super) struct Groups {
    pub(super) name: &'static str,
    pub(super) policy: Policy,
    /// The last bottom layer of `HYBRID_DLRM`.
    pub(super) last_bottom: usize,
    pub(super) gpus: usize,
    tensor: usize,
    expert: usize,
    data: usize,
}

impl Groups {
    pub(super) fn read(
        line: Line<'_>,
        text: &str,
        n_hosts: Option<u32>,
    ) -> Result<(Self, Vec<String>), TraceError> {
        let mut words = text.split_whitespace().peekable();
        let name = words.next().unwrap_or_default();
        let Some(&(name, policy)) = POLICIES.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = POLICIES.iter().map(|(name, _)| *name).collect();
            return Err(line.wrong("policy", &format!("one of {}", names.join(", ")), name));
        };
        let mut notes = Vec::new();
        let first = words.next_if(|word| word.parse::<u64>().is_ok());
        let first = first.map(|word| line.number("header", word)).transpose()?;
        let header = header(line, words, &mut notes)?;
        let Header { tensor, expert, stages, gpus, last_bottom } = header;
        let last_bottom = match (policy, first, last_bottom.or(first)) {
            (Policy::Dlrm { .. }, _, Some(last)) => last.min(HEADER_MAX) as usize,
            (Policy::Dlrm { .. }, _, None) => {
                let expected = "the last bottom layer, as in HYBRID_DLRM 4";
                return Err(line.wrong("DLRM_LAST_BOTTOM_LAYER", expected, "none"));
            }
            (_, Some(number), _) => {
                notes.push(format!("{name} {number}: the number is not used"));
                0
            }
            _ => 0,
        };
        let gpus = gpus
            .or_else(|| n_hosts.map(|n| n as usize))
            .ok_or_else(|| line.wrong("all_gpus", "a number of hosts here or a network", "none"))?;
        let tensor = match (policy.has_groups(), tensor) {
            (true, Some(tensor)) => tensor,
            (true, None) => {
                let expected = "hosts that share a model, as in model_parallel_NPU_group: 4";
                return Err(line.wrong("model_parallel_NPU_group", expected, "none"));
            }
            (false, tensor) => {
                let unused = tensor.filter(|&tensor| tensor != gpus);
                notes.extend(unused.map(|tensor| {
                    format!("model_parallel_NPU_group {tensor} is not used: {name} has one group")
                }));
                gpus
            }
        };
        let stages = if policy.has_groups() { stages } else { 1 };
        let is_multiple = |total: usize, by: usize| by > 0 && total.is_multiple_of(by);
        if gpus < 2 || !is_multiple(gpus, tensor.saturating_mul(stages)) {
            let expected = format!("2 or more GPUs in groups of {tensor} and {stages} stages");
            return Err(line.wrong("all_gpus", &expected, &gpus.to_string()));
        }
        let data = gpus / tensor / stages;
        if !is_multiple(data, expert) {
            let expected = format!("groups that fill the {data} of data parallelism");
            return Err(line.wrong("ep", &expected, &expert.to_string()));
        }
        notes.extend(idle_hosts(gpus as u64, "GPU", n_hosts));
        Ok((Self { name, policy, last_bottom, gpus, tensor, expert, data }, notes))
    }

    /// Returns the groups of a kind: `stride` apart, `n` in each, in blocks of `stride * n`.
    pub(super) fn groups(&self, kind: GroupKind) -> Vec<Vec<usize>> {
        let (tensor, data) = match self.policy {
            Policy::ModelData => (self.data, 1),
            _ => (1, self.tensor),
        };
        let (stride, n) = match kind {
            _ if !self.policy.has_groups() => (1, self.gpus),
            GroupKind::Tensor => (tensor, self.tensor),
            GroupKind::Data => (data, self.data),
            GroupKind::Expert => (data, self.expert),
            GroupKind::DataOfExperts => (data * self.expert, self.data / self.expert),
        };
        let firsts = (0..self.gpus).filter(|gpu| gpu / stride % n == 0);
        firsts.map(|first| (0..n).map(|at| first + at * stride).collect()).collect()
    }
}

/// A computation and the collective after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LayerPass {
    pub(super) ns: u64,
    pub(super) collective: Option<(Collective, GroupKind)>,
    pub(super) bytes: u64,
}

pub(super) struct Layer {
    pub(super) place: u64,
    pub(super) forward: LayerPass,
    pub(super) input: LayerPass,
    pub(super) weights: LayerPass,
    pub(super) update_ns: u64,
}

impl Layer {
    pub(super) fn n_collectives(&self) -> usize {
        let parts = [self.forward, self.input, self.weights];
        parts.iter().filter(|part| part.collective.is_some() && part.bytes > 0).count()
    }
}

pub(super) const POLICIES: [(&str, Policy); 10] = [
    ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", Policy::Transformer),
    ("HYBRID_TRANSFORMER", Policy::Transformer),
    ("HYBRID_DATA_MODEL", Policy::DataModel),
    ("HYBRID_MODEL_DATA", Policy::ModelData),
    ("HYBRID_DLRM", Policy::Dlrm { waits: true }),
    ("HYBRID_DLRM_ENHANCED", Policy::Dlrm { waits: false }),
    ("DATA", Policy::Data),
    ("MODEL", Policy::Model),
    ("MICRO", Policy::Micro),
    ("DISTRIBUTED_INFERENCE", Policy::Inference),
];

/// A policy that is known and not supported: each layer has a policy of its own.
pub(super) const CUSTOMIZED: &str = "HYBRID_CUSTOMIZED";

/// The keys of the first line.
pub(super) struct Header {
    tensor: Option<usize>,
    expert: usize,
    stages: usize,
    gpus: Option<usize>,
    last_bottom: Option<u64>,
}

/// The largest number of a first line.
pub(super) const HEADER_MAX: u64 = 1 << 20;

pub(super) fn header<'a>(
    line: Line<'_>,
    mut words: impl Iterator<Item = &'a str>,
    notes: &mut Vec<String>,
) -> Result<Header, TraceError> {
    let (mut tensor, mut expert, mut stages, mut gpus) = (None, 1, 1, None);
    let mut last_bottom = None;
    while let Some(key) = words.next() {
        let key = key.trim_end_matches(':');
        let Some(value) = words.next() else {
            return Err(line.wrong("header", "a number after every key", key));
        };
        let number = line.number("header", value)?;
        if number > HEADER_MAX {
            let expected = format!("{key} up to {HEADER_MAX}");
            return Err(line.wrong("header", &expected, value));
        }
        let value = number as usize;
        if let "checkpoints" | "checkpoint_initiates" = key {
            let mut layers = Vec::new();
            for _ in 0..value {
                let Some(layer) = words.next() else {
                    let expected = format!("{value} layers after {key}, as its number requires");
                    return Err(line.wrong("header", &expected, &layers.len().to_string()));
                };
                layers.push(line.number("header", layer)?.to_string());
            }
            if value > 0 {
                let noun = if value == 1 { "layer" } else { "layers" };
                let layers = layers.join(", ");
                notes.push(format!(
                    "{key} of {noun} {layers} are not used: no layer is computed again"
                ));
            }
            continue;
        }
        match key {
            "model_parallel_NPU_group" => tensor = Some(value),
            "ep" => expert = value,
            "pp" => stages = value,
            "all_gpus" => gpus = Some(value),
            "DLRM_LAST_BOTTOM_LAYER" => last_bottom = Some(number),
            "vpp" | "ga" | "pp_comm" => {
                let is_usual = value == 0 || value == 1 || key == "vpp" && stages == 1;
                if !is_usual {
                    notes.push(format!("{key} {value} is not used"));
                }
            }
            _ => notes.push(format!("{key} {value} is unknown and not used")),
        }
    }
    if stages > 1 {
        notes.push(format!(
            "pp {stages}: all stages go through the same layers, and send each other nothing"
        ));
    }
    Ok(Header { tensor, expert, stages, gpus, last_bottom })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupKind {
    Tensor,
    Data,
    Expert,
    DataOfExperts,
}

pub(super) fn layer(line: Line<'_>, text: &str) -> Result<Layer, TraceError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [_, _, f1, f2, f3, i1, i2, i3, w1, w2, w3, update, ..] = fields[..] else {
        let expected = "a name, a number, three times compute, collective and bytes, and an update";
        return Err(line.wrong("layer", expected, &count(fields.len(), "field")));
    };
    let part = |ns, collective: &str, bytes, default| -> Result<LayerPass, TraceError> {
        let (name, kind) = if let Some(name) = collective.strip_suffix("_DP_EP") {
            (name, GroupKind::DataOfExperts)
        } else if let Some(name) = collective.strip_suffix("_EP") {
            (name, GroupKind::Expert)
        } else {
            (collective, default)
        };
        let collective = match name {
            "NONE" => None,
            "ALLREDUCE" => Some(Collective::AllReduce),
            "ALLGATHER" => Some(Collective::AllGather),
            "REDUCESCATTER" => Some(Collective::ReduceScatter),
            "ALLTOALL" => Some(Collective::AllToAll),
            _ => {
                let expected = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, with _EP or \
                                _DP_EP if wanted";
                return Err(line.wrong("collective", expected, collective));
            }
        };
        let collective = collective.map(|collective| (collective, kind));
        Ok(LayerPass {
            ns: line.number("compute", ns)?,
            collective,
            bytes: line.number("bytes", bytes)?,
        })
    };
    Ok(Layer {
        place: line.number,
        forward: part(f1, f2, f3, GroupKind::Tensor)?,
        input: part(i1, i2, i3, GroupKind::Tensor)?,
        weights: part(w1, w2, w3, GroupKind::Data)?,
        update_ns: line.number("update", update)?,
    })
}
