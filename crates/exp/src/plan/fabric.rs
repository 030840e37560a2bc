//! The fabric of a run: values of the plan, needs of the transport, and defaults.

use rampmeter_sim::{FabricConfig, PortBytes, Scheduling, Switching};
use rampmeter_types::fabric::{Buffer, FabricNeeds, Forwarding, Need, Trim};
use rampmeter_types::{Bytes, Queueing};

use super::by_port::{NeedsByRate, PortBytesSpec, port_bytes, spec_of};
use super::context::PlanOrigin;
use super::fabric_keys::{FabricSpec, choose};
use super::tables::SwitchingSpec;
use crate::error::PlanError;
use crate::text::words::{PlanSpelling, spell};

/// Builds the fabric and writes every omitted value into `spec`. Preferences that differ between
/// ports are `by_rate`.
///
/// # Errors
/// A value is out of range, or the transport does not work with it.
pub(crate) fn resolve(
    spec: &mut FabricSpec,
    needs: &FabricNeeds,
    by_rate: &NeedsByRate,
    cx: &PlanOrigin<'_>,
) -> Result<FabricConfig, PlanError> {
    if spec.buffer_bytes.is_none() && spec.shared_buffer_bytes.is_none() {
        spec.buffer_bytes = spec_of(&by_rate.buffers);
    }
    if spec.ecn_bytes.is_none() {
        spec.ecn_bytes = spec_of(&by_rate.marks_above);
    }
    let mut fabric = FabricConfig::default();
    spec.assign(needs, &mut fabric, cx)?;
    (fabric.buffer, fabric.buffer_by_port) = buffer(spec, needs, cx)?;
    let (requested, stored) = (spec.switching, SwitchingSpec::StoreAndForward);
    let switching = choose("switching", requested, switching(needs.switching), stored, cx)?;
    let header = spec.cut_through_bytes.unwrap_or(64);
    cx.range("fabric.cut-through-bytes", header as f64, 1.0, 4e9)?;
    let burst_us = spec.shaper_burst_us.unwrap_or(0.0);
    let burst = cx.micros("fabric.shaper-burst-us", burst_us, 0.0)?;
    fabric.switching = match switching {
        SwitchingSpec::StoreAndForward => Switching::StoreAndForward,
        SwitchingSpec::CutThrough => Switching::CutThrough { header: Bytes::new(header) },
        SwitchingSpec::Shaped => Switching::Shaped { burst },
    };
    marks(spec, needs, &mut fabric, cx)?;
    let trim = trim(spec, needs, cx)?;
    fabric.trim = trim.unwrap_or(fabric.trim);
    complete(spec, &fabric, trim);
    (spec.switching, spec.cut_through_bytes) = (Some(switching), Some(header));
    spec.shaper_burst_us = Some(burst_us);
    Ok(fabric)
}

/// Writes the values of `fabric` into `spec`, except those of switching. `trim` is the trimming of
/// its ports, if they trim.
fn complete(spec: &mut FabricSpec, fabric: &FabricConfig, trim: Option<Trim>) {
    spec.complete(fabric);
    let own_bytes = spec.buffer_bytes.take();
    (spec.buffer_bytes, spec.shared_buffer_bytes, spec.alpha) = match fabric.buffer {
        Buffer::PerPort(own) => {
            (Some(own_bytes.unwrap_or(PortBytesSpec::All(own.get()))), None, None)
        }
        Buffer::Shared { per_switch, alpha } => (None, Some(per_switch.get()), Some(alpha)),
    };
    if fabric.mark_above_by_port.is_empty() {
        spec.ecn_bytes = fabric.mark_above.map(|bytes| PortBytesSpec::All(bytes.get()));
    }
    spec.ecn_max_probability = spec.ecn_max_bytes.is_some().then_some(fabric.mark_share);
    spec.trim_bytes = trim.map(|t| t.trimmed_bytes.into());
    spec.trim_choice = trim.map(|t| t.choice);
    spec.header_ratio = trim.map(|t| t.ratio.into());
    spec.header_queue_bytes = trim.map(|t| t.headers.get());
    spec.header_overflow = trim.map(|t| t.overflow);
}

/// Checks that the plan's order within classes has an effect. Removes the key if the ports of the
/// transport trim or queue by rank.
pub(super) fn check_scheduling(
    spec: &mut FabricSpec,
    fabric: &FabricConfig,
    requested: Option<Scheduling>,
    queueing: Queueing,
    cx: &PlanOrigin<'_>,
) -> Result<(), PlanError> {
    let key = "fabric.scheduling";
    if queueing != Queueing::Classes {
        spec.scheduling = None;
        return match requested {
            None | Some(Scheduling::Fifo) => Ok(()),
            Some(requested) => {
                let expected =
                    format!("fifo, as the transport's ports queue by {}", queueing.name());
                Err(cx.unexpected(key, expected, spell(requested)))
            }
        };
    }
    if fabric.is_memoryless() && fabric.scheduling != Scheduling::Fifo {
        let expected = "fifo, as no packet is queued if fabric.buffer-bytes is 0";
        return Err(cx.unexpected(key, expected, spell(fabric.scheduling)));
    }
    Ok(())
}

/// Assigns the queues at which ports mark packets.
fn marks(
    spec: &FabricSpec,
    needs: &FabricNeeds,
    fabric: &mut FabricConfig,
    cx: &PlanOrigin<'_>,
) -> Result<(), PlanError> {
    let (requested, marks_above) = port_bytes("ecn-bytes", spec.ecn_bytes.as_ref(), cx)?;
    let ecn = match marks_above.is_empty() {
        true => choose("ecn-bytes", requested.map(Some), needs.ecn, None, cx)?,
        // The only value that some transports work with is no table.
        false => choose("ecn-bytes", Some(None), needs.ecn, None, cx)?,
    };
    let (mark_all_above, marks_all_above) =
        port_bytes("ecn-max-bytes", spec.ecn_max_bytes.as_ref(), cx)?;
    if spec.ecn_max_probability.is_some() && spec.ecn_max_bytes.is_none() {
        let expected = "fabric.ecn-max-bytes in the plan";
        return Err(cx.unexpected("fabric.ecn-max-probability", expected, "none"));
    }
    let mark_share = spec.ecn_max_probability.unwrap_or(1.0);
    cx.range("fabric.ecn-max-probability", mark_share, 0.0, 1.0)?;
    (fabric.mark_above, fabric.mark_above_by_port) = (ecn, marks_above);
    (fabric.mark_all_above, fabric.mark_all_above_by_port) = (mark_all_above, marks_all_above);
    fabric.mark_share = mark_share;
    Ok(())
}

/// Returns the trimming of ports; `None` if the transport does not understand trimmed packets.
fn trim(
    spec: &FabricSpec,
    needs: &FabricNeeds,
    cx: &PlanOrigin<'_>,
) -> Result<Option<Trim>, PlanError> {
    let keys = [
        ("trim-bytes", spec.trim_bytes.is_some()),
        ("trim-choice", spec.trim_choice.is_some()),
        ("header-ratio", spec.header_ratio.is_some()),
        ("header-queue-bytes", spec.header_queue_bytes.is_some()),
        ("header-overflow", spec.header_overflow.is_some()),
    ];
    let Some(needed) = needs.trim else {
        return match keys.into_iter().find(|(_, is_there)| *is_there) {
            None => Ok(None),
            Some((key, _)) => {
                let expected = "a transport that supports trimming, or no such key";
                Err(cx.unexpected(&format!("fabric.{key}"), expected, "a value"))
            }
        };
    };
    let whole = |key: &str, value: Option<u64>, (least, most): (f64, f64), needed: u64| {
        let value = value.unwrap_or(needed);
        cx.range(&format!("fabric.{key}"), value as f64, least, most).map(|_| value)
    };
    let to = whole("trim-bytes", spec.trim_bytes, (1.0, 9_000.0), needed.trimmed_bytes.into())?;
    let ratio = whole("header-ratio", spec.header_ratio, (0.0, 255.0), needed.ratio.into())?;
    let least = to as f64;
    let headers = spec.header_queue_bytes;
    let headers = whole("header-queue-bytes", headers, (least, 4e9), needed.headers.get())?;
    Ok(Some(Trim {
        trimmed_bytes: to as u16,
        choice: spec.trim_choice.unwrap_or(needed.choice),
        ratio: ratio as u8,
        headers: Bytes::new(headers),
        overflow: spec.header_overflow.unwrap_or(needed.overflow),
    }))
}

impl PlanSpelling for SwitchingSpec {
    fn words(self) -> String {
        spell(self)
    }
}

/// Converts a transport's need of forwarding to the value in plans.
fn switching(need: Need<Forwarding>) -> Need<SwitchingSpec> {
    let spec = |forwarding| match forwarding {
        Forwarding::StoreAndForward => SwitchingSpec::StoreAndForward,
        Forwarding::CutThrough => SwitchingSpec::CutThrough,
    };
    match need {
        Need::Any => Need::Any,
        Need::Prefer(needed) => Need::Prefer(spec(needed)),
        Need::Require(needed) => Need::Require(spec(needed)),
    }
}

/// Returns true if a transport is designed for switches in which no packet may wait.
pub(crate) fn works_without_memory(needs: &FabricNeeds) -> bool {
    let none = Buffer::PerPort(Bytes::ZERO);
    matches!(needs.buffer, Need::Prefer(buffer) | Need::Require(buffer) if buffer == none)
}

/// Returns the memory that `bytes` take in cells, if `cell` is above zero.
pub(crate) fn whole_cells(bytes: Bytes, cell: u16) -> Bytes {
    Bytes::new(bytes.get().next_multiple_of(u64::from(cell.max(1))))
}

/// Checks that a port may hold `least`. Of a shared memory it may hold as much as its dynamic
/// threshold allows when no other port holds anything. Packets take whole cells, if `cell` is above
/// zero.
pub(crate) fn check_buffer(
    buffer: &Buffer,
    least: Bytes,
    cell: u16,
    cx: &PlanOrigin<'_>,
) -> Result<(), PlanError> {
    if port_memory(buffer) >= least {
        return Ok(());
    }
    let least = least.get();
    let why = match cell {
        0 => "the minimum of the transport".to_owned(),
        cell => format!("the minimum of the transport in cells of {cell} bytes"),
    };
    match *buffer {
        Buffer::PerPort(own) => {
            let expected = format!("at least {least}, {why}");
            Err(cx.unexpected("fabric.buffer-bytes", expected, own.get()))
        }
        Buffer::Shared { per_switch, alpha } => {
            let whole = (least as f64 * (1.0 + alpha) / alpha).ceil() as u64;
            let expected = format!("at least {whole}, of which a port may hold {least}, {why}");
            Err(cx.unexpected("fabric.shared-buffer-bytes", expected, per_switch.get()))
        }
    }
}

/// Returns the maximum memory of a port; of a shared memory, that of a port if all others are
/// empty.
pub(crate) fn port_memory(buffer: &Buffer) -> Bytes {
    match *buffer {
        Buffer::PerPort(own) => own,
        Buffer::Shared { per_switch, alpha } => {
            Bytes::new((per_switch.get() as f64 * alpha / (1.0 + alpha)) as u64)
        }
    }
}

/// Returns the memory of ports or switches, and that of ports that have another.
fn buffer(
    spec: &FabricSpec,
    needs: &FabricNeeds,
    cx: &PlanOrigin<'_>,
) -> Result<(Buffer, PortBytes), PlanError> {
    let alpha = cx.range("fabric.alpha", spec.alpha.unwrap_or(1.0), 1e-3, 1e3)?;
    let (own, buffers) = port_bytes("buffer-bytes", spec.buffer_bytes.as_ref(), cx)?;
    let own = own.or_else(|| buffers.min());
    let requested = match (own, spec.shared_buffer_bytes) {
        (Some(_), Some(shared)) => {
            let expected = "fabric.buffer-bytes or this key";
            return Err(cx.unexpected(
                "fabric.shared-buffer-bytes",
                expected,
                format!("both ({shared})"),
            ));
        }
        (Some(own), None) => Some(Buffer::PerPort(own)),
        (None, Some(shared)) => {
            cx.range("fabric.shared-buffer-bytes", shared as f64, 1500.0, 4e9)?;
            Some(Buffer::Shared { per_switch: Bytes::new(shared), alpha })
        }
        (None, None) => None,
    };
    if let (Some(requested), Need::Require(needed)) = (requested, needs.buffer)
        && requested != needed
    {
        let (needed, requested) = (needed.words(), requested.words());
        let why = "the only memory that the transport works with";
        let expected = format!("{needed}, {why}");
        return Err(cx.unexpected("fabric.buffer-bytes", expected, requested));
    }
    let buffer =
        choose("buffer-bytes", requested, needs.buffer, FabricConfig::default().buffer, cx)?;
    Ok((buffer, buffers))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rampmeter_sim::PacketFate;

    use super::*;

    fn resolved(
        plan: &str,
        switching: Need<Forwarding>,
    ) -> Result<(FabricSpec, FabricConfig), PlanError> {
        let mut spec: FabricSpec = toml::from_str(plan).unwrap();
        let needs = FabricNeeds { switching, ..FabricNeeds::default() };
        let config = resolve(
            &mut spec,
            &needs,
            &NeedsByRate::default(),
            &PlanOrigin::new("plan", Path::new(".")),
        )?;
        Ok((spec, config))
    }

    #[test]
    fn switching_follows_the_plan_and_then_the_transport() {
        let cut_through = Switching::CutThrough { header: Bytes::new(64) };
        let needed = Forwarding::CutThrough;
        let switching = |plan, need| resolved(plan, need).unwrap().1.switching;
        let stored = "switching = 'store-and-forward'";
        assert_eq!(switching("", Need::Any), Switching::StoreAndForward);
        assert_eq!(switching("", Need::Prefer(needed)), cut_through);
        assert_eq!(switching("", Need::Require(needed)), cut_through);
        assert_eq!(switching(stored, Need::Prefer(needed)), Switching::StoreAndForward);
        let only = Need::Require(Forwarding::StoreAndForward);
        assert_eq!(switching(stored, only), Switching::StoreAndForward);
        let PlanError { key, problem, .. } =
            resolved("switching = 'shaped'", Need::Require(needed)).unwrap_err();
        let expected =
            "expected cut-through, the only value that the transport works with, got shaped";
        assert_eq!((key.as_str(), problem.to_string().as_str()), ("fabric.switching", expected));
    }

    #[test]
    fn resolved_fabrics_contain_the_defaults() {
        let (spec, config) = resolved("", Need::Prefer(Forwarding::CutThrough)).unwrap();
        assert_eq!(spec.switching, Some(SwitchingSpec::CutThrough));
        assert_eq!(spec.unscheduled_collision, Some(PacketFate::CutOff));
        assert_eq!(config.unscheduled_collision, PacketFate::CutOff);
        let (spec, config) = resolved("unscheduled-collision = 'vanish'", Need::Any).unwrap();
        assert_eq!(spec.unscheduled_collision, Some(PacketFate::Vanish));
        assert_eq!(config.unscheduled_collision, PacketFate::Vanish);
    }

    /// Returns the check of `plan` for ports of a transport, and the resolved key.
    fn scheduled(plan: &str, queueing: Queueing) -> Result<Option<Scheduling>, String> {
        let requested = toml::from_str::<FabricSpec>(plan).unwrap().scheduling;
        let (mut spec, config) = resolved(plan, Need::Any).unwrap();
        let cx = PlanOrigin::new("plan", Path::new("."));
        let checked = check_scheduling(&mut spec, &config, requested, queueing, &cx);
        checked
            .map(|()| spec.scheduling)
            .map_err(|error| format!("{}: {}", error.key, error.problem))
    }

    #[test]
    fn a_scheduling_is_for_ports_that_queue_by_class() {
        let fair = "scheduling = 'fair'";
        let (classes, fifo) = (Queueing::Classes, Scheduling::Fifo);
        assert_eq!(scheduled("", classes), Ok(Some(fifo)));
        assert_eq!(scheduled(fair, classes), Ok(Some(Scheduling::Fair)));
        assert_eq!(scheduled("", Queueing::Ranks), Ok(None));
        assert_eq!(scheduled("scheduling = 'fifo'", Queueing::Ranks), Ok(None));
        let refused = scheduled(fair, Queueing::Trimming).unwrap_err();
        let expected = "expected fifo, as the transport's ports queue by trimming, got fair";
        assert_eq!(refused, format!("fabric.scheduling: {expected}"));
        let refused = scheduled("scheduling = 'fair'\nbuffer-bytes = 0", classes).unwrap_err();
        let expected =
            "expected fifo, as no packet is queued if fabric.buffer-bytes is 0, got fair";
        assert_eq!(refused, format!("fabric.scheduling: {expected}"));
        assert_eq!(scheduled("buffer-bytes = 0", classes), Ok(Some(fifo)));
    }
}
