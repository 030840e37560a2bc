//! Creation of a simulation at time zero.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::{NodeId, Planes, Protocol, Purpose, Rng, Span, Time, Transport};

use super::ahead::LookAhead;
use super::{SAMPLE, Sim, SimSpec, Station, Stations, WindowTotals};
use crate::clock::{ClockSpec, HostClock};
use crate::engine::{EventLimit, Wheel};
use crate::fabric::{Fabric, Interface};
use crate::ledger::Ledger;
use crate::probe::Probe;
use crate::role::{PlaneHost, Role};
use crate::source::Source;

/// Parameters of the hosts and arbiters.
struct StationSpec<'a, F: Transport> {
    clocks: &'a ClockSpec,
    seed: u64,
    n_hosts: u32,
    planes: Option<&'a Arc<Planes>>,
    config: &'a Arc<F::Config>,
}

impl<F: Transport> StationSpec<'_, F> {
    /// Creates a host or an arbiter. A host may have a configuration of its own.
    fn station(&self, number: u32, own: impl Fn(u32) -> Option<Arc<F::Config>>) -> Station<F> {
        let clock = HostClock::draw(self.clocks, number, self.seed);
        let rng = Rng::new(self.seed, u64::from(number), Purpose::Endpoint);
        let (config, node) = (Arc::clone(self.config), NodeId::new(number));
        let now = clock.local(Time::ZERO);
        let endpoint = match number < self.n_hosts {
            true => {
                let config = own(number).unwrap_or(config);
                match self.planes.filter(|planes| planes.count(node) > 1) {
                    Some(planes) => {
                        let part = |plane| {
                            F::Host::new(
                                Arc::clone(&config),
                                node,
                                rng.substream(plane as u64),
                                now,
                            )
                        };
                        Role::Planes(Box::new(PlaneHost::new(node, Arc::clone(planes), part)))
                    }
                    None => Role::Host(F::Host::new(config, node, rng, now)),
                }
            }
            false => Role::Arbiter(F::arbiter(config, number - self.n_hosts, node, rng, now)),
        };
        Station { endpoint, timer_at: Time::NEVER, clock }
    }
}

impl<F, A, P> Sim<F, A, P>
where
    F: Transport,
    A: Source,
    P: Probe,
{
    /// Returns a simulation at time zero.
    pub fn new(spec: SimSpec, config: Arc<F::Config>, arrivals: A, probe: P) -> Self {
        Self::with_host_configs(spec, config, |_| None, arrivals, probe)
    }

    /// Returns a simulation at time zero, in which hosts may have configurations of their own, by
    /// number.
    pub fn with_host_configs(
        spec: SimSpec,
        config: Arc<F::Config>,
        of_host: impl Fn(u32) -> Option<Arc<F::Config>>,
        arrivals: A,
        probe: P,
    ) -> Self {
        let n_hosts = spec.topology.n_hosts();
        let n_stations = n_hosts + spec.topology.n_arbiters();
        let n_pull_hosts = match spec.fabric.interface {
            Interface::Queue => 0,
            Interface::Pull if spec.topology.has_several_links() => n_hosts,
            Interface::Pull => n_stations,
        };
        let planes = spec.planes().map(Arc::new);
        let (clocks, seed) = (&spec.clocks, spec.seed);
        let stations =
            StationSpec { clocks, seed, n_hosts, planes: planes.as_ref(), config: &config };
        let stations = (0..n_stations).map(|number| stations.station(number, &of_host));
        let stations = Stations::new(0, stations.collect());
        let has_rails = spec.topology.rails().iter().any(|&rails| rails > 1);
        let n_pull_fast_hosts =
            if has_rails || spec.fabric.has_pauses() { 0 } else { n_pull_hosts };
        let mut sim = Self {
            now: Time::ZERO,
            wheel: Wheel::new(bucket_width(n_hosts)),
            look_ahead: LookAhead::new(n_stations),
            n_pull_hosts,
            n_pull_fast_hosts,
            stations,
            fabric: Fabric::new(spec.topology, spec.fabric, spec.faults, spec.seed, |switch| {
                F::switch_program(&config, switch)
            })
            .with_planes(planes),
            arrivals: Some(arrivals),
            next: None,
            ahead: VecDeque::new(),
            assigned: VecDeque::new(),
            release_at: Time::NEVER,
            config,
            ledger: Ledger::new(spec.seed),
            seed: spec.seed,
            limit: EventLimit::END,
            grace: spec.drain,
            sample: spec.sample,
            sampled: (u64::MAX - 1, Vec::new()),
            paranoid: spec.paranoid,
            probe,
            blame: None,
            windows: WindowTotals::default(),
        };
        sim.start(n_stations);
        sim
    }

    /// Schedules the first events, and takes the first outputs of hosts and arbiters.
    fn start(&mut self, n_stations: u32) {
        self.fabric.start_programs(&mut self.wheel);
        self.fetch_arrival();
        self.schedule_release();
        self.schedule_outage();
        if let Some(interval) = self.sample {
            self.push_other(Time::ZERO + interval, SAMPLE);
        }
        self.schedule_progress();
        for station in 0..n_stations {
            self.after_input(station);
        }
    }
}

/// Returns the width of the event queue's buckets for a number of hosts. Buckets of about a
/// nanosecond hold nine events each at 144 hosts; larger fabrics have more events in the same time.
pub(super) fn bucket_width(n_hosts: u32) -> Span {
    Span::from_ps(1 << (1024 * 144 / u64::from(n_hosts.max(1))).clamp(128, 4096).ilog2())
}
