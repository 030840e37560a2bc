//! Networks of ASTRA-sim's analytical simulator, of today (YAML, JSON) and of its first versions.
//!
//! ```text
//! topology: [ Ring, Switch ]
//! npus_count: [ 4, 2 ]
//! bandwidth: [ 200.0, 50.0 ]  # GB/s
//! latency: [ 50.0, 500.0 ]  # ns
//! ```
//!
//! NPUs are the hosts `npu0`, `npu1`, ...; the first dimension varies fastest. One dimension of
//! kind `Switch` is a star. In all others NPUs forward packets, which hosts do not. So each NPU is
//! a host at a switch, and these switches have the links of the dimensions. The link of the host is
//! as fast as all links of the NPU together and has no delay. A GB is 2^30 bytes, as in ASTRA-sim.

use rampmeter_workload::import::{count, parse_json};
use saphyr::{LoadableYamlNode as _, Scalar, Yaml};
use serde_json::Value;

use super::draft::{Link, TopologyDraft};
use super::import::ImportedTopology;
use crate::error::Problem;
use crate::text::units;

/// The keys of a network, and those of the first versions.
const KEYS: [[&str; 4]; 2] = [
    ["topology", "npus_count", "bandwidth", "latency"],
    ["topologies-per-dim", "units-count", "link-bandwidth", "link-latency"],
];

/// Two of the keys suffice: one of the others may be missing.
pub(super) fn recognises(_name: &str, first: &str, text: &str) -> bool {
    let has = |keys: [&str; 4]| keys.iter().filter(|key| line_of(text, key).is_some()).count() > 1;
    KEYS.into_iter().any(has) || first.starts_with('{') && text.contains("\"logical-dims\"")
}

/// A dimension of the network.
struct Dimension {
    kind: String,
    npus: u64,
    /// Parallel links, which only the first versions of the format have.
    links: u64,
    gbps: f64,
    latency_ns: f64,
}

pub(super) fn read(text: &str) -> Result<ImportedTopology, Problem> {
    let is_json = text.trim_start().starts_with('{');
    let value = if is_json { parse_json(text)? } else { yaml(text)? };
    if value.get("logical-dims").is_some() {
        return Err(Problem::unexpected("a network", "logical dimensions").with_note(
            ": the network of ASTRA-sim's ns-3 is the file TOPOLOGY_FILE of its configuration",
        ));
    }
    let mut draft = TopologyDraft::default();
    let dimensions = dimensions(&value, &mut draft.notes)
        .map_err(|(key, problem)| problem.at(line_of(text, &key), &key))?;
    build(&dimensions, &mut draft)?;
    Ok(draft.finish()?)
}

/// A key and the problem with its value; the key is empty if there is none.
type KeyProblem = (String, Problem);

/// Returns the first line that has `key` with a value. A table of JSON may be on one line. `None`
/// without a key.
fn line_of(text: &str, key: &str) -> Option<usize> {
    if key.is_empty() {
        return None;
    }
    let is_of_key = |piece: &str| {
        let piece = piece.trim_start_matches(|c: char| c.is_whitespace() || "\"'".contains(c));
        let rest = piece.strip_prefix(key).map(|rest| rest.trim_start_matches(['"', '\'', ' ']));
        rest.is_some_and(|rest| rest.starts_with(':'))
    };
    text.lines().position(|line| line.split(['{', ',']).any(is_of_key)).map(|at| at + 1)
}

/// Returns the value of a YAML file.
fn yaml(text: &str) -> Result<Value, Problem> {
    let documents = Yaml::load_from_str(text).map_err(|error| {
        Problem::Other(error.info().to_owned()).at(Some(error.marker().line()), "")
    })?;
    match &documents[..] {
        [one] => Ok(plain(one)),
        all => Err(Problem::unexpected("one document of YAML", all.len())),
    }
}

/// Returns a value of YAML as one of JSON. Values without a counterpart in JSON become null.
fn plain(value: &Yaml<'_>) -> Value {
    match value {
        Yaml::Value(Scalar::Integer(number)) => (*number).into(),
        Yaml::Value(Scalar::FloatingPoint(number)) => number.into_inner().into(),
        Yaml::Value(Scalar::Boolean(value)) => (*value).into(),
        Yaml::Value(Scalar::String(text)) => text.as_ref().into(),
        Yaml::Sequence(items) => items.iter().map(plain).collect(),
        Yaml::Mapping(entries) => {
            let entry = |(key, value): (&Yaml<'_>, &Yaml<'_>)| {
                (key.as_str().unwrap_or_default().to_owned(), plain(value))
            };
            Value::Object(entries.iter().map(entry).collect())
        }
        Yaml::Tagged(_, inner) => plain(inner),
        _ => Value::Null,
    }
}

fn dimensions(value: &Value, notes: &mut Vec<String>) -> Result<Vec<Dimension>, KeyProblem> {
    let object = value.as_object();
    let object =
        object.ok_or_else(|| (String::new(), Problem::unexpected("a table of lists", value)))?;
    let is_old = object.contains_key("topologies-per-dim");
    let keys = KEYS[usize::from(is_old)];
    let bad = |key: &str, expected: &str, got: &dyn ToString| {
        (key.to_owned(), Problem::unexpected(expected, got.to_string()))
    };
    // One dimension may be a value without brackets.
    let list = |key: &str| match object.get(key) {
        Some(Value::Array(list)) => Ok(list.clone()),
        Some(value @ (Value::String(_) | Value::Number(_))) => Ok(vec![value.clone()]),
        Some(other) => Err(bad(key, "a list", other)),
        None => Err(bad(key, "a list", &"none")),
    };
    let kinds = list(keys[0])?;
    let numbers = |key: &str| -> Result<Vec<f64>, KeyProblem> {
        let list = list(key)?;
        if list.len() != kinds.len() {
            let (expected, got) = (count(kinds.len(), "value"), list.len());
            return Err(bad(key, &format!("{expected}, one a dimension"), &got));
        }
        let number = |value: &Value| {
            let number = value.as_f64().filter(|number| (0.0..=1e9).contains(number));
            number.ok_or_else(|| bad(key, "numbers", value))
        };
        list.iter().map(number).collect()
    };
    let (npus, bandwidth, latency) = (numbers(keys[1])?, numbers(keys[2])?, numbers(keys[3])?);
    let links = match is_old && object.contains_key("links-count") {
        true => numbers("links-count")?,
        false => vec![1.0; kinds.len()],
    };
    let used = [&keys[..], &["links-count", "topology-name", "dimensions-count"]].concat();
    let left: Vec<&str> =
        object.keys().map(String::as_str).filter(|key| !used.contains(key)).collect();
    if !left.is_empty() {
        let are = if left.len() == 1 { "is" } else { "are" };
        notes.push(format!("{} {are} not used", left.join(", ")));
    }
    notes.push("a GB is read as 2^30 bytes, as ASTRA-sim does".to_owned());
    let dimension = |at: usize| {
        let kind = kinds[at].as_str().unwrap_or_default().to_owned();
        if !["Ring", "FullyConnected", "AllToAll", "Switch"].contains(&&*kind) {
            return Err(bad(keys[0], "Ring, FullyConnected or Switch", &kinds[at]));
        }
        let n = npus[at] as u64;
        if npus[at].fract() != 0.0 {
            return Err(bad(keys[1], "whole numbers", &npus[at]));
        }
        if n < 2 && kinds.len() == 1 || n < 1 {
            return Err(bad(keys[1], "at least 2 NPUs", &npus[at]));
        }
        // In the first versions a ring or a full mesh counts the links of an NPU.
        let per_pair = match &*kind {
            "Ring" => 2.0_f64.min((n - 1) as f64),
            "FullyConnected" | "AllToAll" => (n - 1) as f64,
            _ => 1.0,
        };
        let links = if is_old { (links[at] / per_pair.max(1.0)).ceil() as u64 } else { 1 };
        let gbps = bandwidth[at] * 8.0 * f64::from(1 << 30) / 1e9;
        if !units::is_rate(gbps) {
            let expected = format!("a bandwidth above 0 and up to 11641 GB/s in dimension {at}");
            return Err(bad(keys[2], &expected, &bandwidth[at]));
        }
        Ok(Dimension { kind, npus: n, links: links.clamp(1, 64), gbps, latency_ns: latency[at] })
    };
    (0..kinds.len()).map(dimension).collect()
}

fn build(dimensions: &[Dimension], draft: &mut TopologyDraft) -> Result<(), Problem> {
    let counts = dimensions.iter().map(|dimension| u128::from(dimension.npus));
    let total = counts.fold(1_u128, u128::saturating_mul);
    if !(2..=65_536).contains(&total) {
        let problem = Problem::unexpected("2 to 65536 NPUs in all", total);
        return Err(problem.at(None, "npus_count"));
    }
    let total = total as usize;
    for npu in 0..total {
        draft.host(format!("npu{npu}"));
    }
    if let [Dimension { kind, gbps, latency_ns, links: 1, .. }] = dimensions
        && kind == "Switch"
    {
        let switch = draft.switch("switch0".to_owned());
        for npu in 0..total {
            let ends = [npu, switch];
            draft.link(Link { ends, gbps: *gbps, propagation_ns: *latency_ns, loss: 0.0 });
        }
        return Ok(());
    }
    draft.notes.push(
        "NPUs pass packets on: each is a host with a separate switch, which has the NPU's links"
            .to_owned(),
    );
    let all: f64 = dimensions.iter().map(|d| d.gbps * d.links as f64 * degree(d)).sum();
    for npu in 0..total {
        let switch = draft.switch(format!("npu{npu}.switch"));
        let gbps = all.min(100_000.0);
        draft.link(Link { ends: [npu, switch], gbps, propagation_ns: 0.0, loss: 0.0 });
    }
    let mut stride = 1;
    for (number, dimension) in dimensions.iter().enumerate() {
        let n = dimension.npus as usize;
        let join = |draft: &mut TopologyDraft, ends: [usize; 2]| {
            for _ in 0..dimension.links {
                let (gbps, propagation_ns) = (dimension.gbps, dimension.latency_ns);
                draft.link(Link { ends, gbps, propagation_ns, loss: 0.0 });
            }
        };
        let firsts = (0..total).filter(|npu| npu / stride % n == 0);
        for (group, first) in firsts.enumerate() {
            let member = |at: usize| total + first + at % n * stride;
            match &*dimension.kind {
                "Switch" if n > 1 => {
                    let switch = draft.switch(format!("dim{number}.switch{group}"));
                    (0..n).for_each(|at| join(draft, [member(at), switch]));
                }
                "Ring" if n > 2 => (0..n).for_each(|at| join(draft, [member(at), member(at + 1)])),
                _ => {
                    for a in 0..n {
                        (a + 1..n).for_each(|b| join(draft, [member(a), member(b)]));
                    }
                }
            }
        }
        stride *= n;
    }
    Ok(())
}

/// Returns the number of links that an NPU has in a dimension.
fn degree(dimension: &Dimension) -> f64 {
    match (&*dimension.kind, dimension.npus) {
        (_, 1) => 0.0,
        ("Switch", _) | (_, 2) => 1.0,
        ("Ring", _) => 2.0,
        (_, n) => (n - 1) as f64,
    }
}
