//! Priority flow control of a run: values of the plan, needs of the transport, and defaults.

use rampmeter_sim::{FabricConfig, PfcConfig, Switching, Topology};
use rampmeter_types::Bytes;
use rampmeter_types::fabric::{Buffer, FabricNeeds, Need, PfcClasses, PfcThreshold};

use super::context::PlanOrigin;
use super::fabric_keys::FabricSpec;
use super::tables::{PfcSpec, PfcThresholdKind};
use crate::error::PlanError;
use crate::text::words::spell;
use crate::warning::{Warning, warning};

/// Share of free shared memory that the packets of one ingress may take (HPCC §5.1: 11 %).
const ALPHA: f64 = 0.11;

/// Network and packets on which the headroom of priority flow control depends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PfcSite<'a> {
    pub(crate) topology: &'a Topology,
    /// The longest packet.
    pub(crate) packet: Bytes,
    /// The plan's value for express packets, in bytes.
    pub(crate) express: Option<u64>,
}

/// Completes `fabric` by priority flow control, and `spec` by every omitted value. Memory that the
/// transport prefers grows by the headroom of long links if it cannot hold it; a warning reports
/// this.
///
/// # Errors
/// A value out of range, memory that ports do not share, or too little of it.
pub(crate) fn resolve(
    spec: &mut FabricSpec,
    fabric: &mut FabricConfig,
    needs: &FabricNeeds,
    site: PfcSite<'_>,
    is_memory_written: bool,
    cx: &PlanOrigin<'_>,
) -> Result<Option<Warning>, PlanError> {
    let PfcSite { topology, packet, express } = site;
    let requested = spec.pfc.clone().unwrap_or_default();
    let threshold = threshold(&requested, spec.pfc.is_some(), needs, &fabric.buffer, cx)?;
    let Some(threshold) = threshold else {
        if spec.pfc.is_some() {
            spec.pfc =
                Some(PfcSpec { threshold: Some(PfcThresholdKind::Off), ..PfcSpec::default() });
        }
        return Ok(None);
    };
    let preferred = shared_memory(fabric, needs, cx)?;
    let bytes = |key, value: Option<u64>| {
        let range = |bytes: u64| cx.range(key, bytes as f64, 0.0, 4e9).map(|_| Bytes::new(bytes));
        value.map(range).transpose()
    };
    let hysteresis = bytes("fabric.pfc.hysteresis-bytes", requested.hysteresis_bytes)?;
    let hysteresis = hysteresis.unwrap_or(Bytes::new(2 * packet.get()));
    let headroom = bytes("fabric.pfc.headroom-bytes", requested.headroom_bytes)?;
    let classes = classes(&requested, express, needs, fabric, cx)?;
    let packet = packet.max(Bytes::new(fabric.buffer_cell.into()));
    let pfc = PfcConfig { threshold, classes, hysteresis, headroom, packet };
    let least = pfc.memory_min(topology, fabric.switching);
    let is_small = preferred < least;
    if is_small && is_memory_written {
        let (least, got) = (least.get(), preferred.get());
        let expected = format!("at least {least}, thresholds and headroom");
        return Err(cx.unexpected("fabric.shared-buffer-bytes", expected, got));
    }
    let warning = is_small.then(|| {
        let memory = preferred + least;
        if let Buffer::Shared { per_switch, .. } = &mut fabric.buffer {
            *per_switch = memory;
        }
        spec.shared_buffer_bytes = Some(memory.get());
        warning!(
            "pfc-memory",
            "fabric.shared-buffer-bytes: switches have {memory_bytes} bytes: the \
             {preferred_bytes} that the transport prefers, and {headroom_bytes} of thresholds and \
             headroom for long links",
            memory_bytes = memory.get(),
            preferred_bytes = preferred.get(),
            headroom_bytes = least.get(),
        )
    });
    let (kind, alpha, xoff_bytes) = match threshold {
        PfcThreshold::Dynamic { alpha } => (PfcThresholdKind::Dynamic, Some(alpha), None),
        PfcThreshold::Static(bytes) => (PfcThresholdKind::Static, None, Some(bytes.get())),
    };
    spec.pfc = Some(PfcSpec {
        threshold: Some(kind),
        alpha,
        xoff_bytes,
        hysteresis_bytes: Some(hysteresis.get()),
        headroom_bytes: headroom.map(Bytes::get),
        classes: Some(classes),
    });
    spec.express_bytes = Some(fabric.express_max.into());
    fabric.pfc = Some(pfc);
    Ok(warning)
}

/// Returns the memory of a switch whose ports pause.
///
/// # Errors
/// Ports that do not share their memory, or that work without pauses.
fn shared_memory(
    fabric: &FabricConfig,
    needs: &FabricNeeds,
    cx: &PlanOrigin<'_>,
) -> Result<Bytes, PlanError> {
    let Buffer::Shared { per_switch, .. } = fabric.buffer else {
        let expected = "fabric.shared-buffer-bytes in the plan";
        return Err(cx.unexpected("fabric.pfc", expected, "memory of each port"));
    };
    if matches!(fabric.switching, Switching::Shaped { .. }) {
        let expected = "store-and-forward or cut-through";
        let got = "shaped: bursts overrun headroom";
        return Err(cx.unexpected("fabric.switching", expected, got));
    }
    if needs.trim.is_some() {
        let why = "ports that trim drop no data that a pause could save";
        return Err(cx.unexpected("fabric.pfc", format!("none, as {why}"), "a table"));
    }
    Ok(per_switch)
}

/// Returns the threshold, or `None` without priority flow control.
fn threshold(
    requested: &PfcSpec,
    is_asked: bool,
    needs: &FabricNeeds,
    buffer: &Buffer,
    cx: &PlanOrigin<'_>,
) -> Result<Option<PfcThreshold>, PlanError> {
    let needed = match needs.pfc {
        Need::Require(needed) => needed,
        Need::Prefer(needed) if matches!(buffer, Buffer::Shared { .. }) => needed,
        Need::Prefer(_) | Need::Any => None,
    };
    if !is_asked {
        return Ok(needed);
    }
    let kind = match (requested.threshold, requested.xoff_bytes, needed) {
        (Some(kind), ..) => kind,
        (None, Some(_), _) | (None, None, Some(PfcThreshold::Static(_))) => {
            PfcThresholdKind::Static
        }
        (None, None, _) => PfcThresholdKind::Dynamic,
    };
    let only = |key: &str, with: &str| {
        cx.unexpected(key, format!("fabric.pfc.threshold = {with}"), spell(kind))
    };
    if requested.alpha.is_some() && kind != PfcThresholdKind::Dynamic {
        return Err(only("fabric.pfc.alpha", "\"dynamic\""));
    }
    if requested.xoff_bytes.is_some() && kind != PfcThresholdKind::Static {
        return Err(only("fabric.pfc.xoff-bytes", "\"static\""));
    }
    let threshold = match kind {
        PfcThresholdKind::Off => None,
        PfcThresholdKind::Dynamic => {
            let alpha = match needed {
                Some(PfcThreshold::Dynamic { alpha }) => alpha,
                _ => ALPHA,
            };
            let alpha = requested.alpha.unwrap_or(alpha);
            let alpha = cx.range("fabric.pfc.alpha", alpha, 1e-3, 1e3)?;
            Some(PfcThreshold::Dynamic { alpha })
        }
        PfcThresholdKind::Static => {
            let needed = match needed {
                Some(PfcThreshold::Static(bytes)) => Some(bytes.get()),
                _ => None,
            };
            let Some(bytes) = requested.xoff_bytes.or(needed) else {
                let expected = "bytes with threshold = \"static\"";
                return Err(cx.unexpected("fabric.pfc.xoff-bytes", expected, "none"));
            };
            cx.range("fabric.pfc.xoff-bytes", bytes as f64, 0.0, 4e9)?;
            Some(PfcThreshold::Static(Bytes::new(bytes)))
        }
    };
    match (needs.pfc, threshold) {
        (Need::Require(Some(_)), None) => {
            let expected = "on, because the transport needs ports that do not drop";
            Err(cx.unexpected("fabric.pfc.threshold", expected, "off"))
        }
        (Need::Require(None), Some(_)) => Err(cx.unexpected(
            "fabric.pfc.threshold",
            "off, because the transport needs ports that drop",
            "on",
        )),
        _ => Ok(threshold),
    }
}

/// Returns the classes that pauses stop. If they stop every class, no packet is express.
fn classes(
    requested: &PfcSpec,
    express: Option<u64>,
    needs: &FabricNeeds,
    fabric: &mut FabricConfig,
    cx: &PlanOrigin<'_>,
) -> Result<PfcClasses, PlanError> {
    let own = if needs.control_class { PfcClasses::Data } else { PfcClasses::All };
    let classes = requested.classes.unwrap_or(own);
    if classes == PfcClasses::Data && !needs.control_class {
        let expected = "all, as the transport has data in the highest class";
        return Err(cx.unexpected("fabric.pfc.classes", expected, "data"));
    }
    if classes == PfcClasses::All {
        if let Some(bytes) = express.filter(|&bytes| bytes > 0) {
            let expected = "0, as pauses stop every class";
            return Err(cx.unexpected("fabric.express-bytes", expected, bytes));
        }
        fabric.express_max = 0;
    }
    Ok(classes)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rampmeter_sim::{TopologySpec, topologies};

    use super::*;

    fn star() -> Topology {
        let spec = TopologySpec::Star(topologies::Star {
            hosts: 4,
            access_gbps: 100.0,
            propagation_ns: 200.0,
            switch_ns: 450.0,
            host_ns: 450.0,
        });
        spec.build().unwrap()
    }

    fn resolved(plan: &str, needs: &FabricNeeds) -> Result<(FabricSpec, FabricConfig), String> {
        let mut spec: FabricSpec = toml::from_str(plan).unwrap();
        let cx = PlanOrigin::new("plan", Path::new("."));
        let (express, is_memory_written) = (spec.express_bytes, spec.shared_buffer_bytes.is_some());
        let text = |error: PlanError| error.to_string();
        let mut fabric = crate::plan::fabric::resolve(&mut spec, needs, &Default::default(), &cx)
            .map_err(text)?;
        let site = PfcSite { topology: &star(), packet: Bytes::new(1_500), express };
        resolve(&mut spec, &mut fabric, needs, site, is_memory_written, &cx).map_err(text)?;
        Ok((spec, fabric))
    }

    fn needs(pfc: Need<Option<PfcThreshold>>) -> FabricNeeds {
        let shared = Buffer::Shared { per_switch: Bytes::new(32_000_000), alpha: 1.0 };
        let buffer = Need::Prefer(shared);
        FabricNeeds { pfc, buffer, control_class: true, ..FabricNeeds::default() }
    }

    const HPCC: Option<PfcThreshold> = Some(PfcThreshold::Dynamic { alpha: ALPHA });

    #[test]
    fn pfc_is_off_unless_the_plan_or_the_transport_enables_it() {
        assert_eq!(resolved("", &FabricNeeds::default()).unwrap().1.pfc, None);
        let off = resolved("pfc = { threshold = 'off' }", &needs(Need::Prefer(HPCC))).unwrap();
        assert_eq!(off.1.pfc, None);
        let own = resolved("buffer-bytes = 500000", &needs(Need::Prefer(HPCC))).unwrap();
        assert_eq!(own.1.pfc, None, "a preferred one needs shared memory");
        let on = resolved("", &needs(Need::Prefer(HPCC))).unwrap();
        assert_eq!(on.1.pfc.unwrap().threshold, HPCC.unwrap());
    }

    #[test]
    fn resolved_plans_resolve_to_themselves() {
        let plans = ["", "pfc = { xoff-bytes = 20000 }", "pfc = { headroom-bytes = 30000 }"];
        for plan in plans {
            let (spec, fabric) = resolved(plan, &needs(Need::Prefer(HPCC))).unwrap();
            let again = resolved(&toml::to_string(&spec).unwrap(), &needs(Need::Prefer(HPCC)));
            assert_eq!(again.unwrap(), (spec, fabric), "{plan}");
        }
    }

    #[test]
    fn pauses_stop_every_class_of_transports_that_have_data_in_the_highest() {
        let plan = "shared-buffer-bytes = 32000000\npfc = {}";
        let (spec, fabric) = resolved(plan, &FabricNeeds::default()).unwrap();
        assert_eq!(fabric.pfc.unwrap().classes, PfcClasses::All);
        assert_eq!((fabric.express_max, spec.express_bytes), (0, Some(0)));
        let (_, fabric) = resolved(plan, &needs(Need::Any)).unwrap();
        assert_eq!((fabric.pfc.unwrap().classes, fabric.express_max), (PfcClasses::Data, 64));
    }

    #[test]
    fn invalid_pfc_settings_are_errors_that_name_the_key() {
        let shared = |rest: &str| format!("shared-buffer-bytes = 32000000\n{rest}");
        let cases = [
            ("pfc = {}".to_owned(), "fabric.pfc: expected fabric.shared-buffer-bytes in the plan"),
            (
                shared("pfc = { alpha = 0.0 }"),
                "fabric.pfc.alpha: expected a number from 0.001 to 1000",
            ),
            (
                shared("pfc = { threshold = 'static' }"),
                "fabric.pfc.xoff-bytes: expected bytes with",
            ),
            (shared("pfc = { threshold = 'static', alpha = 1.0 }"), "fabric.pfc.alpha: expected"),
            (
                shared("pfc = { threshold = 'off', xoff-bytes = 1 }"),
                "fabric.pfc.xoff-bytes: expected",
            ),
            (shared("pfc = { classes = 'data' }"), "fabric.pfc.classes: expected all"),
            (shared("express-bytes = 64\npfc = {}"), "fabric.express-bytes: expected 0"),
            (shared("switching = 'shaped'\npfc = {}"), "fabric.switching: expected store"),
        ];
        for (plan, expected) in cases {
            let error = resolved(&plan, &FabricNeeds::default()).unwrap_err();
            assert!(error.contains(expected), "{plan}: {error}");
        }
        let only = needs(Need::Require(HPCC));
        let error = resolved("pfc = { threshold = 'off' }", &only).unwrap_err();
        assert!(error.contains("fabric.pfc.threshold: expected on"), "{error}");
    }

    /// Four ports at 100 Gbit/s, 650 ns away and back: 16 250 bytes on the way, and two packets.
    #[test]
    fn memory_holds_the_headroom_of_all_ports_and_static_thresholds() {
        let least = 4 * (16_250 + 3_000 + 20_000);
        let plan = |bytes| format!("shared-buffer-bytes = {bytes}\npfc = {{ xoff-bytes = 20000 }}");
        assert!(resolved(&plan(least), &needs(Need::Any)).is_ok());
        let error = resolved(&plan(least - 1), &needs(Need::Any)).unwrap_err();
        assert!(error.contains("expected at least 157000, thresholds and headroom"), "{error}");
    }
}
