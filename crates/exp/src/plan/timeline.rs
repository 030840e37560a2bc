//! The keys of timelines: `run.timeline` and those that begin with it.

use rampmeter_sim::Topology;
use rampmeter_types::Time;

use super::context::PlanOrigin;
use super::tables::RunSpec;
use crate::error::PlanError;
use crate::timeline::TimelineConfig;
use crate::topology::names::{NamesSpec, NodeName};

/// Returns the contents of the plan's timeline; `None` if it requests none.
///
/// # Errors
/// A file name has none of Perfetto's suffixes, a window ends before it begins, or a node
/// does not exist. Keys of the timeline are given without `run.timeline`.
pub(crate) fn check(
    spec: &RunSpec,
    has_packets: bool,
    topology: &Topology,
    names: &NamesSpec,
    cx: &PlanOrigin<'_>,
) -> Result<Option<TimelineConfig>, PlanError> {
    let Some(file) = &spec.timeline else {
        let alone = [
            ("run.timeline-until-us", spec.timeline_until_us.is_some()),
            ("run.timeline-hosts", spec.timeline_hosts.is_some()),
            ("run.timeline-switches", spec.timeline_switches.is_some()),
        ];
        return match alone.into_iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(cx.unexpected(key, "run.timeline in the plan", "none")),
            None => Ok(None),
        };
    };
    cx.file_name("run.timeline", file, &[".perfetto-trace", ".pftrace"])?;
    if !has_packets {
        return Err(cx.bad("run.timeline", "expected a transport with packets"));
    }
    let from = Time::ZERO + cx.micros("run.timeline-from-us", spec.timeline_from_us, 0.0)?;
    let until = match spec.timeline_until_us {
        None => Time::NEVER,
        Some(us) => {
            let least = (spec.timeline_from_us + 1e-6).min(1e12);
            Time::ZERO + cx.micros("run.timeline-until-us", us, least)?
        }
    };
    cx.range("run.timeline-events", spec.timeline_events as f64, 1.0, 1e12)?;
    let n_stations = topology.n_hosts() + topology.n_arbiters();
    let mut shown = chosen(spec.timeline_hosts.as_deref(), n_stations, |name| {
        let station = names.station(name, topology);
        station.map_err(|expected| cx.unexpected("run.timeline-hosts", &expected, name))
    })?;
    shown.extend(chosen(spec.timeline_switches.as_deref(), topology.n_switches(), |name| {
        let switch = names.switch(name, topology);
        switch.map_err(|expected| cx.unexpected("run.timeline-switches", &expected, name))
    })?);
    let (file, events_max) = (file.clone(), spec.timeline_events);
    Ok(Some(TimelineConfig { file, from, until, events_max, shown }))
}

/// Returns for each of `count` nodes true if it is chosen: all are if the plan omits the key.
fn chosen(
    names: Option<&[NodeName]>,
    count: u32,
    number: impl Fn(&NodeName) -> Result<u32, PlanError>,
) -> Result<Vec<bool>, PlanError> {
    let Some(names) = names else { return Ok(vec![true; count as usize]) };
    let mut chosen = vec![false; count as usize];
    for name in names {
        chosen[number(name)? as usize] = true;
    }
    Ok(chosen)
}
