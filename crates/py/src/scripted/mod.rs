//! The transport `python`, whose endpoints are objects of a Python class: slow, for trying ideas.
//!
//! * [`wire`]: the packets
//! * [`objects`]: objects for Python: hosts, messages, packets
//! * [`host`]: the endpoint, which calls the object
//! * [`failure`]: exceptions of Python, which end a run
//!
//! The Python side is `rampmeter.endpoint`.

mod config;
pub(crate) mod failure;
mod host;
pub(crate) mod objects;
mod wire;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::intern;
use pyo3::prelude::*;
use rampmeter_proto::keys::{PacketSizes, Preset, check_ranges};
use rampmeter_proto::registered::{Deployment, Site};
use rampmeter_proto::{BadKey, Keys, Padding, RegisteredTransport, Segmentation};
use rampmeter_types::envelope::TransportId;
use rampmeter_types::{Bytes, ForwardOnly, NoArbiter, SwitchFacts, Transport};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) use config::ScriptedConfig;
use host::ScriptedHost;
use wire::ScriptedHeader;

thread_local! {
    /// Folder to which the names of Python files in the present plan are relative.
    static BASE: RefCell<PathBuf> = RefCell::default();
}

/// Names of Python files are relative to `base` while this thread checks a plan.
pub(crate) fn relative_to(base: &Path) {
    BASE.set(base.to_owned());
}

/// The transport.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScriptedTransport;

/// The keys of the `transport` table.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct ScriptedKeys {
    /// The Python file that has the endpoints' class, relative to the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    /// Module of the class, instead of `file`; `rampmeter.endpoints` if both are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    module: Option<String>,
    /// The class of the endpoints, derived from `rampmeter.Endpoint`.
    endpoint: String,
    /// Arguments of the class in addition to its host.
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    parameters: Map<String, Value>,
    /// Lengths of full packets.
    #[serde(flatten)]
    packet: PacketSizes,
}

impl Default for ScriptedKeys {
    fn default() -> Self {
        Self {
            file: None,
            module: None,
            endpoint: "StopAndWait".to_owned(),
            parameters: Map::new(),
            packet: PacketSizes::default(),
        }
    }
}

impl Keys for ScriptedKeys {
    const PRESETS: &'static [Preset<Self>] = &[("stop-and-wait", Self::default)];
}

impl Transport for ScriptedTransport {
    const NAME: &'static str = "python";
    const EVENTS_PER_CLOCK_READ: u64 = 16;
    const IS_SINGLE_THREADED: bool = true;
    type Config = ScriptedConfig;
    type Header = ScriptedHeader;
    type Host = ScriptedHost;
    type Arbiter = NoArbiter<ScriptedHeader, ScriptedConfig>;
    type SwitchProgram = ForwardOnly;

    fn switch_program(_config: &Arc<ScriptedConfig>, _switch: SwitchFacts) -> ForwardOnly {
        ForwardOnly
    }
}

impl RegisteredTransport for ScriptedTransport {
    type Keys = ScriptedKeys;
    const TITLE: &'static str = "Python";
    const SUMMARY: &'static str = "Endpoints that are objects of a Python class, for trying ideas.";
    const WIRE: TransportId = TransportId(255);
    const ON_HOSTS: bool = false;

    fn segmentation(keys: &ScriptedKeys) -> Segmentation {
        keys.packet.segmentation(Padding::Exact)
    }

    fn reply_bytes(_keys: &ScriptedKeys) -> Bytes {
        Bytes::ZERO
    }

    fn configure(keys: ScriptedKeys, site: &Site) -> Result<ScriptedConfig, BadKey> {
        check_ranges(&keys)?;
        if !matches!(site.deployment, Deployment::Network(_)) {
            let expected = "a transport for real hosts; this one runs in the simulator alone";
            return Err(BadKey::new("name", expected, Self::NAME));
        }
        Ok(ScriptedConfig {
            endpoint: load(&keys)?,
            segmentation: keys.packet.segmentation(Padding::Exact),
            facts: site.facts,
        })
    }
}

/// Returns the class that the keys name, with its parameters.
fn load(keys: &ScriptedKeys) -> Result<Py<PyAny>, BadKey> {
    let ScriptedKeys { file, module, endpoint, parameters, .. } = keys;
    let parameters = Value::Object(parameters.clone()).to_string();
    Python::attach(|py| {
        let base = BASE.with_borrow(Clone::clone);
        let endpoints = py.import(intern!(py, "rampmeter.endpoint"))?;
        let named = (file, module, endpoint, base, parameters);
        Ok(endpoints.call_method1(intern!(py, "load"), named)?.unbind())
    })
    .map_err(|error: PyErr| {
        let place = file.as_ref().or(module.as_ref()).map_or("rampmeter.endpoints", |p| p);
        let expected = format!(
            "a class of {place} that is derived from rampmeter.Endpoint, and its parameters"
        );
        BadKey::new("endpoint", expected, format!("{endpoint:?} ({error})"))
    })
}
