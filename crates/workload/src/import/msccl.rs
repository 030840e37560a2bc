//! Algorithms of MSCCL and of its compilers, in XML.
//!
//! ```text
//! <algo name="ring" nchunksperloop="2" nchannels="1" ngpus="2" coll="allreduce">
//!   <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
//!     <tb id="0" send="1" recv="1" chan="0">
//!       <step s="0" type="s" srcoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
//! ```
//!
//! A GPU is the host of its number. A thread block (`tb`) runs its steps one after the other. Steps
//! that send (`s`, `rcs`, `rrs`, `rrcs`) are messages of `cnt` chunks to the block's `send`; the
//! messages of a channel between two GPUs belong to the steps that receive there, in their order. A
//! step starts after the step before it, the step `deps` of block `depid`, and its message if it
//! receives. A send ends when it has started, as NCCL copies it into a buffer. Copies and
//! reductions (`cpy`, `re`, `nop`) have no duration. The file has no sizes: a chunk is one
//! `nchunksperloop`-th of `vector-bytes`, and the algorithm is run once.

use std::collections::{BTreeMap, VecDeque};

use roxmltree::{Document, Node};

use super::schedule::row;
use super::{Line, count, idle_hosts};
use crate::trace::{Import, RawRow, Source, TraceError};

pub(crate) fn read(source: &Source<'_>) -> Result<Import, TraceError> {
    let text = source.text()?;
    let document = Document::parse(&text).map_err(|error| TraceError::Format {
        file: source.name.to_owned(),
        reason: format!("expected XML of MSCCL, got {error}"),
    })?;
    let breaks = text.match_indices('\n').map(|(at, _)| at).collect();
    let file = Xml { name: source.name, document: &document, breaks };
    let algo = document.root_element();
    if algo.tag_name().name() != "algo" {
        let got = algo.tag_name().name();
        return Err(file.line(algo).wrong("element", "algo, an algorithm of MSCCL", got));
    }
    let n_chunks = file.number(algo, "nchunksperloop")?.max(1);
    let n_gpus = file.number(algo, "ngpus")?;
    let Some(vector) = source.options.vector_bytes.filter(|&vector| vector > 0) else {
        let expected = "vector-bytes with the file, which has no sizes";
        let got = if source.options.vector_bytes.is_none() { "none" } else { "0" };
        return Err(file.line(algo).wrong("vector-bytes", expected, got));
    };
    let mut notes = notes(&file, algo, vector);
    let idle = idle_hosts(n_gpus, "GPU", source.n_hosts);
    notes.extend(idle.map(|note| format!("{}: {note}", source.name)));
    let blocks = blocks(&file, algo, n_gpus)?;
    let rows = rows(&file, &blocks, |cnt| {
        let bytes = (u128::from(vector) * u128::from(cnt)).div_ceil(u128::from(n_chunks));
        u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
    })?;
    Ok(Import { rows, notes, is_graph: true, is_unordered: true, ..Import::default() })
}

struct Xml<'a> {
    name: &'a str,
    document: &'a Document<'a>,
    /// Places of line breaks.
    breaks: Vec<usize>,
}

impl<'a> Xml<'a> {
    fn line(&self, node: Node<'_, '_>) -> Line<'a> {
        let row = self.breaks.partition_point(|&at| at < node.range().start) + 1;
        Line { file: self.name, number: row as u64 }
    }

    fn number(&self, node: Node<'_, '_>, name: &'static str) -> Result<u64, TraceError> {
        let Some(text) = node.attribute(name) else {
            return Err(self.line(node).wrong(name, "a whole number", "none"));
        };
        self.line(node).number(name, text)
    }

    /// Returns a number that is -1 for none.
    fn optional(&self, node: Node<'_, '_>, name: &'static str) -> Result<Option<u64>, TraceError> {
        match node.attribute(name) {
            Some("-1") | None => Ok(None),
            Some(text) => self.line(node).number(name, text).map(Some),
        }
    }
}

fn notes(file: &Xml<'_>, algo: Node<'_, '_>, vector: u64) -> Vec<String> {
    let mut notes = Vec::new();
    let bound = |name| algo.attribute(name).and_then(|text| text.parse::<u64>().ok());
    let (least, most) = (bound("minBytes").unwrap_or(0), bound("maxBytes").unwrap_or(0));
    if vector < least || most > 0 && vector > most {
        notes.push(format!(
            "{}: vector-bytes {vector} are not among the {least} to {most} of the algorithm",
            file.name
        ));
    }
    if let Some(proto) = algo.attribute("proto").filter(|&proto| proto != "Simple") {
        let note = "is not used: messages have no overhead of a protocol of NCCL";
        notes.push(format!("{}: proto {proto} {note}", file.name));
    }
    let is_local = |node: &Node<'_, '_>| matches!(node.attribute("type"), Some("cpy" | "re"));
    let n_local = algo.descendants().filter(is_local).count();
    if n_local > 0 {
        let steps = count(n_local, "local step");
        notes.push(format!("{}: {steps} (cpy, re) without any time", file.name));
    }
    notes
}

/// A thread block.
struct Block {
    gpu: usize,
    id: u64,
    send: Option<u64>,
    recv: Option<u64>,
    channel: u64,
    steps: Vec<BlockStep>,
}

struct BlockStep {
    place: u64,
    sends: bool,
    receives: bool,
    chunks: u64,
    /// The block and the step on which it depends.
    dependency: Option<(u64, u64)>,
}

fn blocks(file: &Xml<'_>, algo: Node<'_, '_>, n_gpus: u64) -> Result<Vec<Block>, TraceError> {
    let mut blocks = Vec::new();
    let named = |node: Node<'_, '_>, name: &'static str| {
        let is = move |child: &Node<'_, '_>| child.has_tag_name(name);
        node.children().filter(is).map(|child| child.id()).collect::<Vec<_>>()
    };
    let gpus = named(algo, "gpu");
    let n_listed = gpus.len();
    for gpu in gpus.into_iter().filter_map(|id| file.document.get_node(id)) {
        let number = file.number(gpu, "id")?;
        if number >= n_gpus {
            let expected = format!("a GPU below {n_gpus}, as ngpus requires");
            return Err(file.line(gpu).wrong("id", &expected, &number.to_string()));
        }
        for tb in named(gpu, "tb").into_iter().filter_map(|id| file.document.get_node(id)) {
            let steps = named(tb, "step").into_iter().filter_map(|id| file.document.get_node(id));
            blocks.push(Block {
                gpu: number as usize,
                id: file.number(tb, "id")?,
                send: file.optional(tb, "send")?,
                recv: file.optional(tb, "recv")?,
                channel: file.optional(tb, "chan")?.unwrap_or(0),
                steps: steps
                    .enumerate()
                    .map(|(place, node)| step(file, node, place))
                    .collect::<Result<_, _>>()?,
            });
        }
    }
    if n_listed as u64 != n_gpus {
        let expected = format!("{}, as many as follow", n_listed);
        return Err(file.line(algo).wrong("ngpus", &expected, &n_gpus.to_string()));
    }
    Ok(blocks)
}

fn step(file: &Xml<'_>, node: Node<'_, '_>, place: usize) -> Result<BlockStep, TraceError> {
    let line = file.line(node);
    // Dependencies name steps by this number.
    if let Some(number) = file.optional(node, "s")?
        && number != place as u64
    {
        let expected = format!("{place}, the place of the step in its block");
        return Err(line.wrong("s", &expected, &number.to_string()));
    }
    let (receives, sends) = match node.attribute("type") {
        Some("s") => (false, true),
        Some("r" | "rrc") => (true, false),
        Some("rcs" | "rrs" | "rrcs") => (true, true),
        Some("cpy" | "re" | "nop") => (false, false),
        kind => {
            let expected = "s, r, rrc, rcs, rrs, rrcs, cpy, re or nop";
            return Err(line.wrong("type", expected, kind.unwrap_or("none")));
        }
    };
    let block = file.optional(node, "depid")?;
    let dependency = match (block, file.optional(node, "deps")?) {
        (Some(block), Some(step)) => Some((block, step)),
        _ => None,
    };
    let chunks = file.optional(node, "cnt")?.unwrap_or(1);
    if (sends || receives) && chunks == 0 {
        return Err(line.wrong("cnt", "at least 1 chunk of a step that sends or receives", "0"));
    }
    Ok(BlockStep { place: line.number, sends, receives, chunks, dependency })
}

/// A message that no step has received.
#[derive(Clone, Copy, Debug)]
struct Message {
    row: u64,
    /// The line of the step that sends it.
    place: u64,
    chunks: u64,
}

/// Messages of each channel that no step has received: sender, receiver, channel.
type OpenMessages = BTreeMap<(u64, u64, u64), VecDeque<Message>>;

/// Removes the message that a step of a block receives, the oldest of its channel.
fn receive(
    line: Line<'_>,
    block: &Block,
    step: &BlockStep,
    open: &mut OpenMessages,
) -> Result<Message, TraceError> {
    let channel = block.recv.map(|peer| (peer, block.gpu as u64, block.channel));
    let queue = channel.and_then(|channel| open.get_mut(&channel));
    let Some(message) = queue.and_then(VecDeque::pop_front) else {
        let from = block.recv.map_or("-1".to_owned(), |peer| peer.to_string());
        let expected = format!("a step of GPU {from} that sends here");
        return Err(line.wrong("recv", &expected, "none"));
    };
    if message.chunks != step.chunks {
        let expected = format!("{} chunks, as line {} sends", message.chunks, message.place);
        return Err(line.wrong("cnt", &expected, &step.chunks.to_string()));
    }
    Ok(message)
}

/// Returns a computation for each step and a message for each step that sends. A computation ends
/// when its step starts to send or is complete.
fn rows(
    file: &Xml<'_>,
    blocks: &[Block],
    bytes: impl Fn(u64) -> u64,
) -> Result<Vec<RawRow>, TraceError> {
    let mut rows = Vec::new();
    // The row of each step, by GPU, block and number.
    let mut steps: BTreeMap<(usize, u64, u64), u64> = BTreeMap::new();
    let mut open = OpenMessages::new();
    for block in blocks {
        for (number, step) in (0..).zip(&block.steps) {
            let line = Line { file: file.name, number: step.place };
            let at = rows.len() as u64;
            rows.push(row(step.place, [block.gpu, block.gpu], 0, Vec::new(), 0));
            if steps.insert((block.gpu, block.id, number), at).is_some() {
                return Err(line.wrong("id", "each block of a GPU once", &block.id.to_string()));
            }
            if step.sends {
                let Some(peer) = block.send else {
                    return Err(line.wrong("send", "the GPU that the block sends to", "-1"));
                };
                let ends = [block.gpu, peer as usize];
                let channel = (block.gpu as u64, peer, block.channel);
                open.entry(channel).or_default().push_back(Message {
                    row: rows.len() as u64,
                    place: step.place,
                    chunks: step.chunks,
                });
                rows.push(row(step.place, ends, bytes(step.chunks), vec![at], 0));
            }
        }
    }
    for block in blocks {
        for (number, step) in (0..).zip(&block.steps) {
            let line = Line { file: file.name, number: step.place };
            let at = steps[&(block.gpu, block.id, number)];
            let before = number.checked_sub(1).map(|n| steps[&(block.gpu, block.id, n)]);
            let mut after: Vec<u64> = before.into_iter().collect();
            if let Some((other, number)) = step.dependency {
                let Some(&row) = steps.get(&(block.gpu, other, number)) else {
                    let got = format!("step {number} of block {other}");
                    return Err(line.wrong("deps", "a step of a block of the GPU", &got));
                };
                after.push(row);
            }
            if step.receives {
                after.push(receive(line, block, step, &mut open)?.row);
            }
            after.sort_unstable();
            after.dedup();
            rows[at as usize].extra.after = after;
        }
    }
    match open.into_iter().find_map(|(channel, queue)| Some((channel, *queue.front()?))) {
        Some(((_, peer, channel), message)) => {
            let line = Line { file: file.name, number: message.place };
            let expected = format!("a step of GPU {peer} that receives it on channel {channel}");
            Err(line.wrong("send", &expected, "none"))
        }
        None => Ok(rows),
    }
}
