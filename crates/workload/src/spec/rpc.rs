//! Requests and responses: keys and checks.

use std::sync::Arc;

use rampmeter_types::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pattern::Checker;
use super::pattern::{CheckedPattern, Pattern, WorkloadError};
use super::{HostsSpec, SizeSpec};
pub use crate::pattern::rpc::TimeDistribution;
use crate::pattern::rpc::{CallPacing, Rpc};

/// Keys of `rpc`. A call is a request to a server, or to several, and their responses.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct RpcSpec {
    /// Lengths of requests.
    pub requests: SizeSpec,
    /// Lengths of responses.
    pub responses: SizeSpec,
    /// Number of calls of each client.
    pub calls: u32,
    /// Calling hosts; default: all.
    pub clients: Option<HostsSpec>,
    /// Called hosts, drawn again for each call and never the client itself; default: all.
    pub servers: Option<HostsSpec>,
    /// Number of servers of a call, which ends with the last response.
    #[serde(default = "one")]
    pub fan: u32,
    /// Number of calls that a client has in flight at a time.
    #[serde(default = "one")]
    pub concurrency: u32,
    /// Time from the end of a call to the next one of the client.
    #[serde(default)]
    pub think_us: f64,
    /// Time from one call of a client to the next, whether or not it has ended; instead of
    /// `think-us` and `concurrency`.
    pub interval_us: Option<f64>,
    /// Time from a request to its response at a server.
    #[serde(default)]
    pub service_us: f64,
    /// The distribution of `think-us`, `interval-us` and `service-us`, which are means.
    #[serde(default)]
    pub time_distribution: TimeDistribution,
    /// Start of all clients.
    #[serde(default)]
    pub start_us: f64,
}

fn one() -> u32 {
    1
}

/// Maximum number of flows of all calls together: 60 bytes each are 3 GB.
const FLOWS_MAX: u64 = 50_000_000;

impl Pattern for RpcSpec {
    fn check(&self, checker: &mut Checker<'_>) -> Result<CheckedPattern, WorkloadError> {
        let clients = checker.hosts("clients", self.clients.as_ref(), 1)?;
        let servers = checker.hosts("servers", self.servers.as_ref(), 1)?;
        let inside = clients.iter().any(|client| servers.contains(client));
        let others = servers.count() - u32::from(inside);
        if others == 0 {
            return checker.wrong("servers", "a host other than the client", "none");
        }
        if !(1..=others).contains(&self.fan) {
            let expected = format!("from 1 to {others}, the servers of every client");
            return checker.wrong("fan", &expected, self.fan);
        }
        for (key, n) in [("calls", self.calls), ("concurrency", self.concurrency)] {
            if n == 0 {
                return checker.wrong(key, "at least 1", 0);
            }
        }
        let pace = match self.interval_us {
            None => {
                let think = checker.span("think-us", self.think_us)?;
                CallPacing::Closed { think, concurrency: self.concurrency.min(self.calls) }
            }
            Some(_) if self.think_us != 0.0 => {
                return checker.wrong("think-us", "no value with interval-us", self.think_us);
            }
            Some(_) if self.concurrency != 1 => {
                return checker.wrong("concurrency", "no value with interval-us", self.concurrency);
            }
            Some(us) => CallPacing::Open { interval: checker.span("interval-us", us)? },
        };
        let rpc = Rpc {
            clients,
            servers,
            requests: lengths(checker, "requests", &self.requests)?,
            responses: lengths(checker, "responses", &self.responses)?,
            calls: self.calls,
            fan: self.fan,
            pace,
            service: checker.span("service-us", self.service_us)?,
            time_distribution: self.time_distribution,
            start: Time::ZERO + checker.span("start-us", self.start_us)?,
            stream: checker.stream(),
        };
        match rpc.n_flows() {
            n if n > FLOWS_MAX => checker.wrong("calls", &format!("at most {FLOWS_MAX} flows"), n),
            _ => Ok(CheckedPattern::new(rpc)),
        }
    }
}

fn lengths(
    checker: &mut Checker<'_>,
    key: &str,
    spec: &SizeSpec,
) -> Result<Arc<crate::SizeDist>, WorkloadError> {
    let context = checker.context();
    let key = format!("{}{key}", checker.path);
    let (dist, notes) = spec.resolve_at(&key, context.payload, &context.base_dir)?;
    notes.into_iter().for_each(|note| checker.warn(note));
    Ok(Arc::new(dist))
}
