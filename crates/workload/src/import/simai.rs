//! Workloads of `SimAI`, AICB and ASTRA-sim, in the text format of ASTRA-sim's first versions.
//!
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 4 ep: 1 pp: 1 all_gpus: 8
//! 1
//! layer1 -1 5000 ALLREDUCE 8388608 1 NONE 0 1 NONE 0 1
//! ```
//!
//! The first line has the sizes of groups, the second the number of layers. A layer has a name and
//! an ignored number. Then follow three times a computation in nanoseconds, a collective and its
//! bytes: forward, for the gradient of the input, for that of the weights. The last column, the
//! update of the weights, is a computation too.
//!
//! Hosts run the layers forward, each computation before its collective, then backward. At the end
//! they wait for all collectives. `Policy` has the order of the backward pass, and the collectives
//! for which a layer waits. Collectives are rings, all-to-alls direct.
//!
//! GPU `t + TP (d + DP p)` has place t in its tensor-parallel, d in its data-parallel group, and p
//! among pipeline stages. With `HYBRID_MODEL_DATA` it is GPU `d + DP (t + TP p)`. Groups of experts
//! (`_EP`) are EP neighbours of a data-parallel group, and `_DP_EP` joins those with one place in
//! them. The other policies have one group of all hosts. Without `all_gpus` the hosts are those of
//! the network.

mod layer;
mod training;

use self::layer::{CUSTOMIZED, Groups, Layer, Policy, layer};
use self::training::Run;
use super::{Line, count};
use crate::trace::{Import, Source, TraceError, without_mark};

pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    parse(source.name, &source.text()?, source.n_hosts)
}

/// Returns true for a workload: its first word is a policy, and the second line a number of layers.
pub(crate) fn is_simai(bytes: &[u8]) -> bool {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(4096)]);
    let mut lines = without_mark(&head).lines().map(str::trim).filter(|line| !line.is_empty());
    let policy = lines.next().and_then(|line| line.split_whitespace().next());
    policy.is_some_and(|policy| policy == CUSTOMIZED || Policy::named(policy).is_some())
        && lines.next().is_some_and(|line| line.parse::<u64>().is_ok())
}

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
    let mut run = Run::new(file, &groups, &layers);
    run.convert()?;
    let n_unused = layers.iter().map(Layer::n_collectives).sum::<usize>() - run.n_used;
    if n_unused > 0 {
        notes.push(format!(
            "{} of the file {} not used: {} does not run {} in ASTRA-sim",
            count(n_unused, "collective"),
            if n_unused == 1 { "is" } else { "are" },
            groups.name,
            if n_unused == 1 { "it" } else { "them" }
        ));
    }
    notes.iter_mut().for_each(|note| *note = format!("{file}: {note}"));
    let (rows, rounds) = (run.schedule.rows, run.schedule.rounds);
    let import = Import { rows, rounds, notes, ..Import::default() };
    Ok(Import { is_graph: true, is_unordered: true, ..import })
}
