//! The private module `rampmeter._core`: conversions and errors, nothing else.
//!
//! [`register`] fills a module for any [`Registry`]. A crate with a custom transport makes a core
//! with it by a `#[pymodule]` that calls this function. That crate depends on this one without
//! default features, as a library cannot have two functions by which Python loads it.

mod analysis;
mod errors;
mod port;
mod scripted;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use errors::{
    ATTRIBUTES, EndpointError, InternalError, PlanError, ResultError, broken_error, collect_error,
    convert_error, error_of_plan, plan_error, run_error,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
pub use rampmeter_exp::Registry;
use rampmeter_exp::{Observer, Plan, Progress, ValidPlan, Warning, catch_violation};
use rampmeter_metrics::SampleOrder;
use rampmeter_types::Bytes;
use rampmeter_types::quantity::Unit;
use rampmeter_workload::size::{self, SizeInterpolation};
use rampmeter_workload::spec::SizeSpec;
use rampmeter_workload::trace::Options;
use scripted::ScriptedTransport;

/// Origin of texts that Python passes, in errors.
const ORIGIN: &str = "plan";

/// Passes progress to a Python callable, and returns its answer and errors.
struct PyObserver {
    callback: Option<Py<PyAny>>,
    error: Option<PyErr>,
}

impl Observer for PyObserver {
    fn on_progress(&mut self, progress: &Progress) -> bool {
        let Some(callback) = &self.callback else { return true };
        let answer = Python::attach(|py| {
            py.check_signals()?;
            let dict = PyDict::new(py);
            dict.set_item("submitted", progress.submitted)?;
            dict.set_item("delivered", progress.delivered)?;
            dict.set_item("total", progress.total)?;
            dict.set_item("now_ps", progress.now.as_ps())?;
            dict.set_item("hops", progress.hops)?;
            dict.set_item("events", progress.events)?;
            callback.call1(py, (dict,))?.is_truthy(py)
        });
        answer.unwrap_or_else(|error| {
            self.error = Some(error);
            false
        })
    }
}

/// The transports that plans may name; [`register`] sets it.
static REGISTRY: OnceLock<Registry> = OnceLock::new();

fn registry() -> &'static Registry {
    REGISTRY.get_or_init(Registry::builtin)
}

fn valid(plan: &str, base: &str) -> PyResult<ValidPlan> {
    scripted::relative_to(Path::new(base));
    let checked = catch_violation(|| {
        let read = Plan::from_toml(plan, ORIGIN, registry())?;
        read.check(ORIGIN, Path::new(base)).map_err(|error| error.in_text(plan))
    });
    let checked = checked.map_err(|broken| {
        InternalError::new_err(format!("internal error: {broken}; please report the plan"))
    })?;
    checked.map_err(|error| error_of_plan(&error))
}

/// Runs a plan and writes its results to the folder `out`; returns the summary as JSON.
#[pyfunction]
#[pyo3(signature = (plan, base, out, progress=None, default_threads=1))]
fn run(
    py: Python<'_>,
    plan: &str,
    base: &str,
    out: PathBuf,
    progress: Option<Py<PyAny>>,
    default_threads: usize,
) -> PyResult<String> {
    let mut plan = valid(plan, base)?;
    plan.set_default_threads(default_threads);
    let mut observer = PyObserver { callback: progress, error: None };
    let summary = py.detach(|| catch_violation(|| rampmeter_exp::run(&plan, &out, &mut observer)));
    let summary = summary.map_err(|broken| broken_error(py, &broken, &plan))?;
    if let Some(error) = observer.error {
        return Err(error);
    }
    Ok(summary.map_err(|e| run_error(&e))?.to_json())
}

/// Checks a plan; returns it with every default as JSON.
#[pyfunction]
fn check(plan: &str, base: &str) -> PyResult<String> {
    let plan = valid(plan, base)?;
    serde_json::to_string(plan.plan()).map_err(plan_error)
}

/// Line, former and present setting of a renamed key.
type RenamedSetting = (usize, String, String);

/// Returns the text of the file `name` with the present names and units of keys. Also returns the
/// line, the former and the present setting of each renamed key.
#[pyfunction]
fn migrate(text: &str, name: &str) -> PyResult<(String, Vec<RenamedSetting>)> {
    let (text, settings) =
        rampmeter_exp::migrate(text, name).map_err(|error| error_of_plan(&error))?;
    Ok((text, settings.into_iter().map(|one| (one.line, one.old, one.new)).collect()))
}

/// Runs a plan without writing anything; returns its speed as JSON.
#[pyfunction]
#[pyo3(name = "bench")]
fn speed(py: Python<'_>, plan: &str, base: &str) -> PyResult<String> {
    let plan = valid(plan, base)?;
    let report = py.detach(|| catch_violation(|| rampmeter_exp::bench(&plan)));
    let report = report.map_err(|broken| broken_error(py, &broken, &plan))?;
    serde_json::to_string(&report).map_err(plan_error)
}

/// Returns the payload of a full packet between hosts, and its other bytes on the link.
#[pyfunction]
fn host_packet(mtu: usize) -> (usize, usize) {
    rampmeter_exp::host_packet(mtu)
}

/// Returns the number in `unit` (`us`, `bytes`) of a text with a unit, such as `5us` or `2MB`.
#[pyfunction]
fn quantity(text: &str, unit: &str) -> Option<f64> {
    Unit::from_symbol(unit).or_else(|| Unit::from_key(unit))?.parse(text)
}

/// Writes the flows of a plan for hosts to send; returns the facts for a run on hosts as JSON.
#[pyfunction]
fn testbed_prepare(plan: &str, base: &str, table: PathBuf) -> PyResult<String> {
    let plan = valid(plan, base)?;
    let run = rampmeter_exp::prepare(&plan, &table).map_err(|e| run_error(&e))?;
    serde_json::to_string(&run).map_err(plan_error)
}

/// Makes results of the logs of hosts in the folder `out`; returns the summary as JSON.
#[pyfunction]
fn testbed_collect(
    plan: &str,
    base: &str,
    logs: Vec<PathBuf>,
    wall_seconds: f64,
    out: PathBuf,
) -> PyResult<String> {
    let plan = valid(plan, base)?;
    let wall = Duration::from_secs_f64(wall_seconds.max(0.0));
    let summary = rampmeter_exp::collect(&plan, &logs, wall, &out);
    Ok(summary.map_err(|e| collect_error(&e))?.to_json())
}

/// Converts a trace or a topology of another tool, or of another form, to one of ours. Returns the
/// number of its flows or links, and notes about omitted parts.
#[pyfunction]
#[pyo3(signature = (
    source, format, target, sort=false, topology=None, vector_bytes=None, groups=None, columns=None,
))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
fn convert(
    py: Python<'_>,
    source: PathBuf,
    format: &str,
    target: PathBuf,
    sort: bool,
    topology: Option<PathBuf>,
    vector_bytes: Option<u64>,
    groups: Option<PathBuf>,
    columns: Option<BTreeMap<String, String>>,
) -> PyResult<(usize, Vec<String>)> {
    let columns = columns.unwrap_or_default();
    let options = Options { vector_bytes, groups, columns, ..Options::default() };
    let topology = topology.as_deref();
    let converted = py
        .detach(|| rampmeter_exp::convert(&source, format, &target, sort, topology, &options))
        .map_err(|error| convert_error(&error))?;
    Ok((converted.n_rows, converted.notes))
}

/// Writes a capture of one packet of every type of the repository's transports, which the dissector
/// decodes; returns the fields of each as JSON.
#[pyfunction]
fn every_packet(file: PathBuf) -> PyResult<String> {
    rampmeter_exp::every_packet(&file, &Registry::builtin().wires()).map_err(|e| run_error(&e))
}

/// Returns the transports that plans may name, with their keys, as JSON.
#[pyfunction]
fn transports() -> PyResult<String> {
    serde_json::to_string(&registry().about()).map_err(plan_error)
}

/// Returns the JSON Schema of plans.
#[pyfunction]
fn plan_schema() -> PyResult<String> {
    serde_json::to_string(&rampmeter_exp::plan_schema(registry())).map_err(plan_error)
}

/// Returns the values derived from a plan and its network, as JSON: names end in their units.
#[pyfunction]
fn derived(plan: &str, base: &str) -> PyResult<String> {
    serde_json::to_string(&valid(plan, base)?.derived()).map_err(plan_error)
}

/// Returns the traffic that the workload of a plan offers to each tier of links, as JSON.
#[pyfunction]
fn offered(py: Python<'_>, plan: &str, base: &str) -> PyResult<String> {
    let plan = valid(plan, base)?;
    serde_json::to_string(&py.detach(|| plan.offered())).map_err(plan_error)
}

/// Nodes and links of the network of a plan, as JSON.
#[pyfunction]
fn drawing(plan: &str, base: &str) -> PyResult<String> {
    serde_json::to_string(&valid(plan, base)?.drawing()).map_err(plan_error)
}

/// Returns the warnings about likely mistakes in a plan: the code and the text of each, and its
/// values as JSON.
#[pyfunction]
fn warnings(plan: &str, base: &str) -> PyResult<Vec<(&'static str, String, String)>> {
    let warnings = valid(plan, base)?.warnings().into_iter();
    let parts = warnings.map(|Warning { code, values, text }| {
        Ok((code, text, serde_json::to_string(&values).map_err(plan_error)?))
    });
    parts.collect()
}

/// Returns the statistics of values, as in summaries, as JSON. `values` are 64-bit floating-point
/// numbers, as the machine has them, which may be infinite. In the order of arrival of one steady
/// process they have confidence intervals.
#[pyfunction]
#[pyo3(signature = (values, in_order=false))]
fn statistics(values: &[u8], in_order: bool) -> PyResult<Option<BTreeMap<&'static str, f64>>> {
    let (chunks, rest) = values.as_chunks::<8>();
    if !rest.is_empty() {
        let got = values.len();
        return Err(PyValueError::new_err(format!("values: expected 8 bytes each, got {got}")));
    }
    let mut values: Vec<f64> = chunks.iter().map(|bytes| f64::from_ne_bytes(*bytes)).collect();
    let order = if in_order { SampleOrder::Arrival } else { SampleOrder::Any };
    Ok(order.stats(&mut values).map(|stats| {
        let known = [
            ("count", Some(stats.count as f64)),
            ("mean", Some(stats.mean)),
            ("p50", Some(stats.p50)),
            ("p99", Some(stats.p99)),
            ("p999", Some(stats.p999)),
            ("max", Some(stats.max)),
            ("mean_ci", stats.mean_ci),
            ("p50_ci", stats.p50_ci),
            ("p99_ci", stats.p99_ci),
            ("p999_ci", stats.p999_ci),
        ];
        // Infinite values have no intervals.
        let is_told = |name: &str, value: f64| !name.ends_with("_ci") || value.is_finite();
        let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
        known.filter(|&(name, value)| is_told(name, value)).collect()
    }))
}

/// Returns the names of the published size distributions.
#[pyfunction]
fn distributions() -> Vec<&'static str> {
    size::NAMES.to_vec()
}

/// Returns the mean of a published size distribution in bytes.
#[pyfunction]
fn distribution_mean(name: &str) -> PyResult<f64> {
    Ok(size::named(name).map_err(plan_error)?.mean_bytes())
}

/// Returns the points of a size distribution: sizes in bytes and the probability of a size at most
/// that. `sizes` is JSON of that key of plans. Also returns true if sizes between two points occur,
/// as if on a line. Packets of files have `payload` bytes, and their names are relative to `base`.
#[pyfunction]
fn distribution_points(
    sizes: &str,
    base: PathBuf,
    payload: u64,
) -> PyResult<(Vec<(f64, f64)>, bool)> {
    let spec: SizeSpec = serde_json::from_str(sizes).map_err(plan_error)?;
    let sizes = spec.resolve("", Bytes::new(payload), &base).map_err(plan_error)?;
    let unit = sizes.unit().get() as f64;
    let points = sizes.points().map(|(at, cdf)| (at * unit, cdf)).collect();
    Ok((points, sizes.shape() != SizeInterpolation::Steps))
}

/// Returns the module with the transports of this repository.
#[cfg(feature = "module")]
#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    register(module, Registry::builtin())
}

/// Adds everything to `module`, whose plans may name the transports of `registry`, and `python`.
///
/// A process has one registry. A second call, as when Python makes the module a second time, does
/// not replace it.
///
/// # Errors
/// Errors of Python.
pub fn register(module: &Bound<'_, PyModule>, registry: Registry) -> PyResult<()> {
    REGISTRY.get_or_init(|| registry.with::<ScriptedTransport>());
    let py = module.py();
    let plan_error = py.get_type::<PlanError>();
    let result_error = py.get_type::<ResultError>();
    for name in ATTRIBUTES {
        plan_error.setattr(name, py.None())?;
        result_error.setattr(name, py.None())?;
    }
    module.add("PlanError", plan_error)?;
    let with_codes = [
        ("ResultError", result_error, "bad-results"),
        ("InternalError", py.get_type::<InternalError>(), "simulator-fault"),
        ("EndpointError", py.get_type::<EndpointError>(), "endpoint-fault"),
        ("AttachError", py.get_type::<port::AttachError>(), "no-node"),
        ("FullError", py.get_type::<port::FullError>(), "full-window"),
        ("NodeGoneError", py.get_type::<port::NodeGoneError>(), "node-gone"),
    ];
    for (name, class, code) in with_codes {
        class.setattr("code", code)?;
        module.add(name, class)?;
    }
    module.add_class::<scripted::objects::Host>()?;
    module.add_class::<scripted::objects::MessageToSend>()?;
    module.add_class::<scripted::objects::PyPacket>()?;
    module.add_class::<port::Port>()?;
    module.add_class::<port::SendOutcome>()?;
    module.add_class::<port::Message>()?;
    module.add("VERSION", rampmeter_exp::VERSION)?;
    module.add("COMMIT", rampmeter_exp::COMMIT)?;
    module.add("PROFILE", rampmeter_exp::PROFILE)?;
    module.add(
        "WARNINGS",
        BTreeMap::from(rampmeter_exp::WARNINGS.map(|(code, names)| (code, names.to_vec()))),
    )?;
    module.add_function(wrap_pyfunction!(run, module)?)?;
    module.add_function(wrap_pyfunction!(check, module)?)?;
    module.add_function(wrap_pyfunction!(migrate, module)?)?;
    module.add_function(wrap_pyfunction!(speed, module)?)?;
    module.add_function(wrap_pyfunction!(host_packet, module)?)?;
    module.add_function(wrap_pyfunction!(quantity, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::student_t, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::cosy_share, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::cosy_limits, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::cosy_queues, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::cosy_delta, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::cosy_slots_max, module)?)?;
    module.add_function(wrap_pyfunction!(analysis::homa_priorities, module)?)?;
    module.add_function(wrap_pyfunction!(testbed_prepare, module)?)?;
    module.add_function(wrap_pyfunction!(testbed_collect, module)?)?;
    module.add_function(wrap_pyfunction!(convert, module)?)?;
    module.add_function(wrap_pyfunction!(every_packet, module)?)?;
    module.add_function(wrap_pyfunction!(transports, module)?)?;
    module.add_function(wrap_pyfunction!(plan_schema, module)?)?;
    module.add_function(wrap_pyfunction!(derived, module)?)?;
    module.add_function(wrap_pyfunction!(offered, module)?)?;
    module.add_function(wrap_pyfunction!(drawing, module)?)?;
    module.add_function(wrap_pyfunction!(warnings, module)?)?;
    module.add_function(wrap_pyfunction!(statistics, module)?)?;
    module.add_function(wrap_pyfunction!(distributions, module)?)?;
    module.add_function(wrap_pyfunction!(distribution_mean, module)?)?;
    module.add_function(wrap_pyfunction!(distribution_points, module)?)?;
    Ok(())
}
