//! Division of a run into partitions, and their reunion.
//!
//! Both leave nothing behind: a run that has been divided and reunited is the same as before, so
//! that all else that a run does needs no partitions. Packets, events and endpoints are moved.

use std::collections::VecDeque;
use std::sync::Arc;

use rampmeter_types::{SwitchProgram, Time, Transport};

use super::ahead::LookAhead;
use super::setup::bucket_width;
use super::{SAMPLE, SUBMIT, Sim, Stations, WindowTotals};
use crate::engine::event::{ARRIVE, OTHER, PROGRAM, READY, TIMER, WAKE, decode, packet_event};
use crate::engine::{EventKey, EventLimit, Wheel};
use crate::probe::Probe;
use crate::source::Source;
use crate::topo::Partitions;

impl<F: Transport, A: Source, P: Probe> Sim<F, A, P> {
    /// Returns why the run cannot be divided; `None` if it can.
    pub(super) fn reason_for_one_thread(&self) -> Option<&'static str> {
        let observes =
            P::PACKETS || P::PHASES || <F::SwitchProgram as SwitchProgram<F::Header>>::IS_WATCHED;
        match () {
            () if F::IS_SINGLE_THREADED => Some("endpoints run in one thread"),
            () if observes => Some("packets are observed"),
            () if self.probe.progress_interval().is_some() => Some("rates of flows are recorded"),
            () if self.arrivals.as_ref().is_some_and(Source::has_dependent_messages) => {
                Some("flows depend on others")
            }
            () => self.fabric.reason_for_one_thread(),
        }
    }

    /// Divides the run. The next submission and the next sample, whose time is returned, have no
    /// port, and no partition has their events.
    pub(super) fn divide(&mut self, partitions: &Partitions) -> (Vec<Self>, Option<Time>) {
        let mut divided: Vec<Self> =
            (0..partitions.len()).map(|number| self.partition(number, partitions)).collect();
        for (number, part) in divided.iter_mut().enumerate().rev() {
            part.stations = self.stations.split_off(partitions.stations(number).0);
            self.fabric.move_queues(number, partitions, &mut part.fabric);
        }
        let mut sample_at = None;
        while let Some(key) = self.wheel.pop() {
            match self.partition_of(key, partitions) {
                Some(number) => self.move_event(key, &mut divided[number]),
                None if decode(key.code).1 == SAMPLE => sample_at = Some(key.time),
                None => {}
            }
        }
        (divided, sample_at)
    }

    /// Returns a partition without hosts, packets and events.
    fn partition(&mut self, number: usize, partitions: &Partitions) -> Self {
        let program = |switch| F::switch_program(&self.config, switch);
        let (first, n_stations) = partitions.stations(number);
        Self {
            now: self.now,
            wheel: Wheel::new(bucket_width(n_stations)).renewed(self.now),
            look_ahead: LookAhead::new(n_stations),
            fabric: self.fabric.partition(number, partitions, self.seed, program),
            stations: Stations::new(first, Vec::new()),
            config: Arc::clone(&self.config),
            n_pull_hosts: self.n_pull_hosts,
            n_pull_fast_hosts: self.n_pull_fast_hosts,
            arrivals: None,
            next: None,
            ahead: VecDeque::new(),
            assigned: VecDeque::new(),
            release_at: self.release_at,
            ledger: self.ledger.partition(),
            seed: self.seed,
            limit: EventLimit::before(self.now),
            grace: self.grace,
            sample: None,
            sampled: (0, Vec::new()),
            paranoid: self.paranoid,
            probe: self.probe.partition().expect("runs whose probe is whole are not divided"),
            blame: None,
            windows: WindowTotals::default(),
        }
    }

    /// Submits the next message that was assigned to this partition.
    pub(super) fn submit_assigned(&mut self) {
        let Some((id, arrival)) = self.assigned.pop_front() else { return };
        let host = self.hand_over(id, &arrival);
        self.after_input(host);
    }

    /// Reunites the partitions of a run.
    pub(super) fn merge_partitions(&mut self, partitions: &Partitions, divided: Vec<Self>) {
        self.wheel = self.wheel.renewed(self.now);
        for (number, mut part) in divided.into_iter().enumerate() {
            while let Some(key) = part.wheel.pop() {
                part.move_event(key, self);
            }
            let Self { fabric, stations, mut ledger, probe, .. } = part;
            self.fabric.rejoin(number, partitions, fabric);
            self.stations.append(stations);
            self.ledger.add_totals(&mut ledger);
            let is_inside = |station| partitions.of_station(station) == number;
            self.ledger.take_bytes(&mut ledger, is_inside);
            self.probe.rejoin(probe);
        }
        self.fabric.set_packets_away(0);
    }

    /// Returns the partition in which an event happens; `None` for a submission or a sample.
    fn partition_of(&self, key: EventKey, partitions: &Partitions) -> Option<usize> {
        let (kind, number, _) = decode(key.code);
        Some(match kind {
            ARRIVE => self.fabric.far_partition(number, partitions),
            READY | WAKE => self.fabric.owning_partition(number, partitions),
            PROGRAM => partitions.of_switch(number),
            TIMER => partitions.of_station(number),
            OTHER if number == SUBMIT || number == SAMPLE => return None,
            _ => unreachable!("runs that have event {kind:#x} {number} are not divided"),
        })
    }

    /// Moves an event that has been taken from the queue to another part of the run, with its
    /// packet.
    fn move_event(&mut self, key: EventKey, to: &mut Self) {
        let (kind, number, handle) = decode(key.code);
        to.wheel.push(match kind {
            ARRIVE | READY => {
                let handle = self.fabric.move_packet(handle, &mut to.fabric);
                packet_event(key.time, kind, number, handle)
            }
            _ => key,
        });
    }
}
