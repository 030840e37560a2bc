//! The keys of captures: `run.capture` and those that begin with it.

use rampmeter_sim::Topology;

use super::context::PlanOrigin;
use super::tables::RunSpec;
use crate::capture::CaptureConfig;
use crate::error::PlanError;
use crate::topology::names::{NamesSpec, NodeName};
use crate::transport::ValidTransport;

/// Returns the contents of the plan's capture; `None` if it requests none.
///
/// # Errors
/// A file name or a host that cannot be used, or a transport without a packet format.
pub(super) fn check(
    spec: &RunSpec,
    transport: &ValidTransport,
    topology: &Topology,
    names: &NamesSpec,
    cx: &PlanOrigin<'_>,
) -> Result<Option<CaptureConfig>, PlanError> {
    let Some(file) = &spec.capture else {
        if spec.capture_hosts.is_some() {
            return Err(cx.unexpected("run.capture-hosts", "run.capture in the plan", "none"));
        }
        return Ok(None);
    };
    cx.file_name("run.capture", file, &[".pcapng"])?;
    if transport.wire().is_none() {
        let expected = "a transport with a packet format";
        return Err(cx.unexpected("run.capture", expected, "one without"));
    }
    let station = |name: &NodeName| {
        let station = names.station(name, topology);
        station.map_err(|expected| cx.unexpected("run.capture-hosts", &expected, name))
    };
    let mut ends: Vec<u32> = match &spec.capture_hosts {
        None => (0..topology.n_hosts() + topology.n_arbiters()).collect(),
        Some(hosts) => hosts.iter().map(station).collect::<Result<_, _>>()?,
    };
    ends.sort_unstable();
    ends.dedup();
    if ends.is_empty() {
        return Err(cx.unexpected("run.capture-hosts", "names or numbers of hosts", "none"));
    }
    cx.range("run.capture-packets", spec.capture_packets as f64, 1.0, 1e12)?;
    Ok(Some(CaptureConfig { file: file.clone(), ends, packets_max: spec.capture_packets }))
}
