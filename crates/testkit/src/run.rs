//! Whole simulations of any transport.

use std::sync::Arc;

use rampmeter_sim::{
    Arrival, ClockSpec, FabricConfig, FaultSpec, FlowRecord, Probe, Sim, SimSpec, Status, Topology,
};
use rampmeter_types::{Bytes, NodeId, Rate, Span, Time, Transport};
use rampmeter_workload::{WorkloadContext, WorkloadSpec};

/// Returns a run without faults, with every check on.
pub fn spec(topology: Topology, seed: u64) -> SimSpec {
    SimSpec {
        topology,
        fabric: FabricConfig::default(),
        faults: FaultSpec::default(),
        clocks: ClockSpec::default(),
        seed,
        // Longer than senders try that double their timeout up to a second.
        drain: Span::from_us(60_000_000),
        sample: Some(Span::from_us(50)),
        paranoid: true,
    }
}

/// Keeps the record of every message.
#[derive(Debug, Default)]
pub struct Records(pub Vec<FlowRecord>);

impl Probe for Records {
    fn on_flow(&mut self, record: &FlowRecord) {
        self.0.push(*record);
    }
}

/// Runs to the end; returns the outcome of each message, in order of submission.
pub fn run<F: Transport>(
    config: F::Config,
    spec: SimSpec,
    arrivals: Vec<Arrival>,
) -> (Status, Vec<FlowRecord>) {
    let mut records = Records::default();
    let mut sim = Sim::<F, _, _>::new(spec, Arc::new(config), arrivals.into_iter(), &mut records);
    let status = sim.run(u64::MAX);
    drop(sim);
    records.0.sort_by_key(|r| r.id);
    (status, records.0)
}

/// Returns a message of `size` bytes that is submitted at `at` picoseconds.
pub fn arrival(at: u64, src: u32, dst: u32, size: u64) -> Arrival {
    Arrival::new(Time::from_ps(at), NodeId::new(src), NodeId::new(dst), Bytes::new(size))
}

/// IMC10 at load 0.6 on 144 hosts.
pub fn imc10(flows: u64, gbps: u64, seed: u64) -> Vec<Arrival> {
    let text =
        format!("pattern = \"all-to-all\"\nsizes = \"imc10\"\nload = 0.6\nflows = {flows}\n");
    let workload: WorkloadSpec = toml::from_str(&text).expect("a workload");
    let context = WorkloadContext {
        n_hosts: 144,
        access_rate: Rate::from_gbps(gbps),
        host_rates: Vec::new(),
        payload: Bytes::new(1460),
        wire: Bytes::new(1500),
        hosts_per_rack: Some(16),
        hosts_per_pod: None,
        base_dir: ".".into(),
    };
    let workload = workload.validate(&context).expect("a workload for 144 hosts");
    workload.flows(seed).map(|f| Arrival::new(f.arrival, f.src, f.dst, f.size)).collect()
}
