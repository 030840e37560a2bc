//! Quantiles, cosy's theorems and Homa's priorities for Python.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rampmeter_proto::cosy::analysis;
use rampmeter_proto::homa::cutoffs;
use rampmeter_types::{Bytes, Rate, Span};

fn positive(name: &str, value: u64) -> PyResult<()> {
    if value > 0 {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name}: expected at least 1, got 0")))
}

/// Returns the two-sided quantile of Student's t at a confidence level between 0 and 1.
#[pyfunction]
pub(crate) fn student_t(freedom: u32, level: f64) -> PyResult<f64> {
    let quantile = rampmeter_metrics::confidence::student_t(freedom.into(), level);
    quantile.ok_or_else(|| PyValueError::new_err("freedom: expected at least 1, got 0"))
}

/// Returns the share of the best sustainable load that cosy sustains in expectation.
#[pyfunction]
pub(crate) fn cosy_share(slots: u32, cores: u32) -> PyResult<f64> {
    positive("slots", slots.into())?;
    positive("cores", cores.into())?;
    Ok(analysis::f(slots, cores))
}

/// Returns the best delay bound and the best sustainable load of any design.
#[pyfunction]
pub(crate) fn cosy_limits(rtt_ps: u64, size_bytes: u64, rate_bps: u64) -> PyResult<(u64, f64)> {
    positive("size_bytes", size_bytes)?;
    let rate = rate(rate_bps)?;
    let (rtt, size) = (Span::from_ps(rtt_ps), Bytes::new(size_bytes));
    let delta = analysis::delta_star(rtt, size, rate);
    Ok((delta.as_ps(), analysis::theta_star(rtt, size, rate)))
}

/// Returns cosy's longest queue in bytes, and the longest time that a packet spends in queues.
#[pyfunction]
pub(crate) fn cosy_queues(
    switches: u32,
    slots: u32,
    ratio: u32,
    packet_bytes: u64,
    rate_bps: u64,
) -> PyResult<(u64, u64)> {
    positive("slots", slots.into())?;
    positive("ratio", ratio.into())?;
    let packet = Bytes::new(packet_bytes);
    let queue = analysis::queue_bound(switches, slots.saturating_mul(ratio), packet);
    let time = analysis::queueing_bound(switches, slots, ratio, packet, rate(rate_bps)?);
    Ok((queue.get(), time.as_ps()))
}

/// Returns cosy's delay bound.
#[pyfunction]
pub(crate) fn cosy_delta(
    rtt_ps: u64,
    size_bytes: u64,
    rate_bps: u64,
    slots: u32,
    queueing_ps: u64,
) -> PyResult<u64> {
    let (rtt, queueing) = (Span::from_ps(rtt_ps), Span::from_ps(queueing_ps));
    let size = Bytes::new(size_bytes);
    Ok(analysis::delta_cosy(rtt, size, rate(rate_bps)?, slots, queueing).as_ps())
}

/// Virtual links up to which queues fit into a buffer.
#[pyfunction]
pub(crate) fn cosy_slots_max(buffer_bytes: u64, switches: u32, packet_bytes: u64) -> PyResult<u32> {
    positive("switches", switches.into())?;
    positive("packet_bytes", packet_bytes)?;
    Ok(analysis::slots_max(Bytes::new(buffer_bytes), switches, Bytes::new(packet_bytes)))
}

fn rate(bps: u64) -> PyResult<Rate> {
    positive("rate_bps", bps)?;
    Rate::from_bps(bps).ok_or_else(|| PyValueError::new_err("rate_bps: expected at least 1"))
}

/// Number of sizes that sample the line between two points of a distribution.
const SAMPLES_PER_LINE: u32 = 1_000;

/// Returns the number of priorities of Homa's unscheduled packets, and the cut-offs between them,
/// for the distribution `sizes`. Packets of files have `payload` bytes.
#[pyfunction]
pub(crate) fn homa_priorities(
    sizes: &str,
    base: PathBuf,
    payload: u64,
    rtt_bytes: f64,
    priorities: u8,
) -> PyResult<(u8, Vec<u64>)> {
    let (points, is_linear) = crate::distribution_points(sizes, base, payload)?;
    let parts = if is_linear { SAMPLES_PER_LINE } else { 1 };
    let mut cdf = vec![points[0]];
    for pair in points.windows(2) {
        let [(from, start), (size, below)] = [pair[0], pair[1]];
        cdf.extend((1..=parts).map(|part| {
            let part = f64::from(part) / f64::from(parts);
            (from + (size - from) * part, start + (below - start) * part)
        }));
    }
    let split = cutoffs::split_priorities(&cdf, rtt_bytes, priorities);
    Ok((split.unscheduled_priorities, split.cutoffs.to_vec()))
}
