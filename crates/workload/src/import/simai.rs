//! Workloads of `SimAI`, AICB and ASTRA-sim, in the text format of ASTRA-sim's first versions.
//!
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 all_gpus: 8
//! 1
//! layer1 -1 5000 ALLREDUCE 8388608 1 NONE 0 1 NONE 0 1
//! ```
//!
//! The first line has the sizes of groups, the second the number of layers. A layer has a name, a
//! number that nothing reads, and three times a computation in nanoseconds, a collective and its
//! bytes: forward, for the gradient of the input, for that of the weights. The last column, the
//! update of the weights, is a computation too.
//!
//! Hosts go forward through the layers, each computation before its collective, then back through
//! them: weights, then input. They wait for each collective but those of weights, for which they
//! wait at the end. GPU `t + TP (d + DP p)` has place t in its tensor-parallel, d in its
//! data-parallel group, and p among pipeline stages. Groups of experts (`_EP`) are EP neighbours of
//! a data-parallel group, and `_DP_EP` joins those with one place in them. Collectives are rings,
//! all-to-alls direct.
//!
//! Of ASTRA-sim's policies, `DATA`, `MODEL`, `MICRO` and `HYBRID_DLRM` have one group of all hosts
//! for each collective; the others need `model_parallel_NPU_group`, whose neighbours share a model.
//! Without `all_gpus` the hosts are those of the network.

use super::schedule::{Collective, Schedule};
use super::{Line, count};
use crate::trace::{Import, Source, TraceError, without_mark};

pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    parse(source.name, &source.text()?, source.n_hosts)
}

/// True for a workload: its first word is a policy, and the second line a number of layers.
pub(crate) fn is(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let mut lines = without_mark(&head).lines().map(str::trim).filter(|line| !line.is_empty());
    let policy = lines.next().and_then(|line| line.split_whitespace().next());
    policy.is_some_and(|policy| POLICIES.iter().any(|(name, _)| *name == policy))
        && lines.next().is_some_and(|line| line.parse::<u64>().is_ok())
}

/// Policies of parallelism, and true if groups follow from `model_parallel_NPU_group`.
const POLICIES: [(&str, bool); 8] = [
    ("HYBRID_TRANSFORMER_FWD_IN_BCKWD", true),
    ("HYBRID_TRANSFORMER", true),
    ("HYBRID_DATA_MODEL", true),
    ("HYBRID_MODEL_DATA", true),
    ("HYBRID_DLRM", false),
    ("DATA", false),
    ("MODEL", false),
    ("MICRO", false),
];

fn parse(file: &str, text: &str, n_hosts: Option<u32>) -> Result<Import, TraceError> {
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (number, first) = lines.next().unwrap_or((1, ""));
    let (groups, mut notes) = Groups::read(Line { file, number }, first, n_hosts)?;
    let (number, counted) = lines.next().unwrap_or((2, ""));
    let line = Line { file, number };
    let n_layers = line.number("layers", counted.trim())?;
    let lines: Vec<(u64, &str)> = lines.collect();
    let layers: Vec<Layer> = lines
        .iter()
        .map(|&(number, text)| layer(Line { file, number }, text))
        .collect::<Result<_, _>>()?;
    let is_long = |(_, text): &&(u64, &str)| text.split_whitespace().count() > 12;
    let n_long = lines.iter().filter(is_long).count();
    if n_long > 0 {
        notes.push(format!(
            "{} with more than 12 columns, which are not used",
            count(n_long, "layer")
        ));
    }
    if layers.len() as u64 != n_layers {
        let expected = format!("{}, as many as follow", layers.len());
        return Err(line.wrong("layers", &expected, counted.trim()));
    }
    notes.iter_mut().for_each(|note| *note = format!("{file}: {note}"));
    let schedule = run(file, &groups, &layers)?;
    let (rows, rounds) = (schedule.rows, schedule.rounds);
    let import = Import { rows, rounds, notes, ..Import::default() };
    Ok(Import { is_graph: true, is_unordered: true, ..import })
}

/// Sizes of groups.
struct Groups {
    gpus: usize,
    tensor: usize,
    expert: usize,
    data: usize,
    /// True if all hosts are one group in every collective.
    is_single: bool,
}

impl Groups {
    fn read(
        line: Line<'_>,
        text: &str,
        n_hosts: Option<u32>,
    ) -> Result<(Self, Vec<String>), TraceError> {
        let mut words = text.split_whitespace().peekable();
        let policy = words.next().unwrap_or_default();
        let Some((_, has_groups)) = POLICIES.iter().find(|(name, _)| *name == policy) else {
            let names: Vec<&str> = POLICIES.iter().map(|(name, _)| *name).collect();
            return Err(line.wrong("policy", &format!("one of {}", names.join(", ")), policy));
        };
        let mut notes = Vec::new();
        if let Some(last) = words.next_if(|word| word.parse::<u64>().is_ok()) {
            notes.push(format!(
                "{policy} {last}: the number is not used, all layers are waited for"
            ));
        }
        let Header { tensor, expert, stages, gpus } = header(line, words, &mut notes)?;
        let gpus = gpus
            .or_else(|| n_hosts.map(|n| n as usize))
            .ok_or_else(|| line.wrong("all_gpus", "a number of hosts here or a network", "none"))?;
        let tensor = match tensor {
            Some(tensor) => tensor,
            None if *has_groups => {
                let expected = "hosts that share a model, as in model_parallel_NPU_group: 4";
                return Err(line.wrong("model_parallel_NPU_group", expected, "none"));
            }
            None => gpus,
        };
        let is_single = !has_groups && tensor == gpus;
        let is_multiple = |of: usize, by: usize| by > 0 && of.is_multiple_of(by);
        if gpus < 2 || !is_multiple(gpus, tensor.saturating_mul(stages)) {
            let expected = format!("2 or more GPUs in groups of {tensor} and {stages} stages");
            return Err(line.wrong("all_gpus", &expected, &gpus.to_string()));
        }
        let data = if is_single { 1 } else { gpus / tensor / stages };
        if !is_multiple(data, expert) {
            let expected = format!("groups that fill the {data} of data parallelism");
            return Err(line.wrong("ep", &expected, &expert.to_string()));
        }
        Ok((Self { gpus, tensor, expert, data, is_single }, notes))
    }

    /// Returns the groups of a kind: `stride` apart, `n` in each, in blocks of `stride * n`.
    fn of(&self, kind: Kind) -> Vec<Vec<usize>> {
        let (stride, n) = match kind {
            _ if self.is_single => (1, self.gpus),
            Kind::Tensor => (1, self.tensor),
            Kind::Data => (self.tensor, self.data),
            Kind::Expert => (self.tensor, self.expert),
            Kind::DataOfExperts => (self.tensor * self.expert, self.data / self.expert),
        };
        let firsts = (0..self.gpus).filter(|gpu| gpu / stride % n == 0);
        firsts.map(|first| (0..n).map(|at| first + at * stride).collect()).collect()
    }
}

/// The keys of the first line.
struct Header {
    tensor: Option<usize>,
    expert: usize,
    stages: usize,
    gpus: Option<usize>,
}

/// The largest number of a first line.
const HEADER_MAX: u64 = 1 << 20;

fn header<'a>(
    line: Line<'_>,
    mut words: impl Iterator<Item = &'a str>,
    notes: &mut Vec<String>,
) -> Result<Header, TraceError> {
    let (mut tensor, mut expert, mut stages, mut gpus) = (None, 1, 1, None);
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
                    let expected = format!("{value} layers after {key}, as its number says");
                    return Err(line.wrong("header", &expected, &layers.len().to_string()));
                };
                layers.push(line.number("header", layer)?.to_string());
            }
            if value > 0 {
                let layers = layers.join(", ");
                notes.push(format!(
                    "{key} of layers {layers} are not used: no layer is computed again"
                ));
            }
            continue;
        }
        match key {
            "model_parallel_NPU_group" => tensor = Some(value),
            "ep" => expert = value,
            "pp" => stages = value,
            "all_gpus" => gpus = Some(value),
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
    Ok(Header { tensor, expert, stages, gpus })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Tensor,
    Data,
    Expert,
    DataOfExperts,
}

/// A computation and the collective after it.
#[derive(Clone, Copy, Debug)]
struct Part {
    ns: u64,
    collective: Option<(Collective, Kind)>,
    bytes: u64,
}

struct Layer {
    place: u64,
    forward: Part,
    input: Part,
    weights: Part,
    update_ns: u64,
}

fn layer(line: Line<'_>, text: &str) -> Result<Layer, TraceError> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [_, _, f1, f2, f3, i1, i2, i3, w1, w2, w3, update, ..] = fields[..] else {
        let expected = "a name, a number, three times compute, collective and bytes, and an update";
        return Err(line.wrong("layer", expected, &count(fields.len(), "field")));
    };
    let part = |ns, collective: &str, bytes, default| -> Result<Part, TraceError> {
        let (name, kind) = if let Some(name) = collective.strip_suffix("_DP_EP") {
            (name, Kind::DataOfExperts)
        } else if let Some(name) = collective.strip_suffix("_EP") {
            (name, Kind::Expert)
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
        Ok(Part {
            ns: line.number("compute", ns)?,
            collective,
            bytes: line.number("bytes", bytes)?,
        })
    };
    Ok(Layer {
        place: line.number,
        forward: part(f1, f2, f3, Kind::Tensor)?,
        input: part(i1, i2, i3, Kind::Tensor)?,
        weights: part(w1, w2, w3, Kind::Data)?,
        update_ns: line.number("update", update)?,
    })
}

fn run(file: &str, groups: &Groups, layers: &[Layer]) -> Result<Schedule, TraceError> {
    let mut schedule = Schedule::new(groups.gpus);
    let mut open: Vec<Vec<u64>> = vec![Vec::new(); groups.gpus];
    let mut do_part = |schedule: &mut Schedule, layer: &Layer, part: &Part, is_weights: bool| {
        schedule.place = layer.place;
        (0..groups.gpus).for_each(|gpu| schedule.compute(gpu, part.ns));
        if let Some((collective, kind)) = part.collective {
            for group in groups.of(kind) {
                // No algorithm has more than two messages a pair.
                if schedule.rows.len() + 2 * group.len() * group.len() > ROWS_MAX {
                    return Err(too_many(file, layer.place));
                }
                for (gpu, rows) in schedule.collective(collective, &group, part.bytes) {
                    if is_weights {
                        open[gpu].extend(rows);
                    } else {
                        schedule.wait(gpu, rows);
                    }
                }
            }
        }
        if schedule.rows.len() <= ROWS_MAX {
            return Ok(());
        }
        Err(too_many(file, layer.place))
    };
    for layer in layers {
        do_part(&mut schedule, layer, &layer.forward, false)?;
    }
    for layer in layers.iter().rev() {
        do_part(&mut schedule, layer, &layer.weights, true)?;
        do_part(&mut schedule, layer, &layer.input, false)?;
    }
    let update: u64 = layers.iter().map(|layer| layer.update_ns).sum();
    for (gpu, rows) in open.into_iter().enumerate() {
        schedule.wait(gpu, rows);
        schedule.compute(gpu, update);
    }
    Ok(schedule)
}

fn too_many(file: &str, line: u64) -> TraceError {
    let expected = format!("expected at most {ROWS_MAX} flows and computations");
    let reason = format!("{expected}, got more by line {line}");
    TraceError::Format { file: file.to_owned(), reason }
}

/// Rows that a machine of 16 GB can hold.
pub(super) const ROWS_MAX: usize = 20_000_000;
