//! Topologies of any graph.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{TopologyKind, access, delay, is_false, processing, propagation, rate};
use crate::topo::build::{LinkParameters, check_count};
use crate::topo::forward::expand;
use crate::topo::{Link, Node, Topology, TopologyError};

/// Any graph: hosts `h0`, `h1`, ... and switches `s0`, `s1`, ... joined by `links`.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[schemars(inline)]
pub struct Links {
    /// Hosts, 2 or more.
    #[schemars(range(min = 2, max = 65536))]
    pub hosts: u64,
    /// Switches, 1 or more, or 0 if hosts forward.
    #[schemars(range(min = 0, max = 65536))]
    pub switches: u64,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// Processing in every switch.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "processing")]
    pub switch_ns: f64,
    /// Processing in every host.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "processing")]
    pub host_ns: f64,
    /// Hosts with several links, or with a link to a host, forward packets for others.
    #[serde(default, skip_serializing_if = "is_false")]
    pub hosts_forward: bool,
}

/// One link of a topology file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinkSpec {
    /// Ends of the link, such as `["h0", "s0"]`.
    pub between: [String; 2],
    /// Rate in Gbit/s.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default = "access")]
    pub gbps: f64,
    /// Rate in Gbit/s from the second end to the first; default: `gbps`.
    #[schemars(range(min = 1e-6, max = 1e5))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gbps_back: Option<f64>,
    /// Propagation in nanoseconds.
    #[schemars(range(min = 0.0, max = 1e9))]
    #[serde(default = "propagation")]
    pub propagation_ns: f64,
}

impl TopologyKind for Links {
    fn build(&self) -> Result<Topology, TopologyError> {
        let hosts = check_count("hosts", self.hosts, 2, "2 to 65536")?;
        // Without switches an error names the first host with a link to another.
        let switches = check_count("switches", self.switches, 0, "0 to 65536")?;
        let wires =
            LinkParameters::new(access(), access(), propagation(), self.switch_ns, self.host_ns)?;
        let parse = |(i, spec): (usize, &LinkSpec)| spec.parse(i, hosts, switches);
        let mut links: Vec<Link> =
            self.links.iter().enumerate().map(parse).collect::<Result<_, _>>()?;
        if !self.hosts_forward {
            check_directions(&self.links, &links)?;
            return Topology::check(hosts, switches, links, &wires);
        }
        let all = expand(hosts, switches, &mut links);
        check_count("switches and hosts that forward", all.into(), 1, "1 to 65536")?;
        Topology::check(hosts, all, links, &wires)
    }
}

/// Checks that no link of a host is listed from both of its ends, as readers of directed graphs
/// write them.
fn check_directions(specs: &[LinkSpec], links: &[Link]) -> Result<(), TopologyError> {
    let mut first_ends = BTreeMap::new();
    for (link, (spec, &Link { a, b, .. })) in specs.iter().zip(links).enumerate() {
        if !matches!((a, b), (Node::Host(_), Node::Switch(_))) {
            continue;
        }
        let is_from_host = spec.between[0].starts_with('h');
        if *first_ends.entry((a, b)).or_insert(is_from_host) != is_from_host {
            let (from, to) = if is_from_host { (a, b) } else { (b, a) };
            return Err(TopologyError::TwoDirections { link, from, to });
        }
    }
    Ok(())
}

impl LinkSpec {
    fn parse(&self, link: usize, hosts: u32, switches: u32) -> Result<Link, TopologyError> {
        let end = |name: &str| {
            let number = |rest: &str, n: u32| rest.parse::<u32>().ok().filter(|&i| i < n);
            let host = name.strip_prefix('h').and_then(|r| number(r, hosts)).map(Node::Host);
            let switch = || name.strip_prefix('s').and_then(|r| number(r, switches));
            host.or_else(|| switch().map(Node::Switch)).ok_or_else(|| TopologyError::BadEnd {
                link,
                hosts,
                switches,
                got: name.to_owned(),
            })
        };
        let (a, b) = (end(&self.between[0])?, end(&self.between[1])?);
        let there = rate("gbps", self.gbps)?;
        let rate_back = self.gbps_back.map_or(Ok(there), |gbps| rate("gbps-back", gbps))?;
        let propagation = delay("propagation-ns", self.propagation_ns)?;
        // A host is the first end, so that readers of the link list find access links easily.
        Ok(Link { a, b, rate: there, rate_back, propagation }.ordered())
    }
}
