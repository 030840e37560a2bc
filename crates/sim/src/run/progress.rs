//! Progress of messages at intervals, for probes that record rates.

use rampmeter_types::{NodeId, Time, Transport};

use super::{PROGRESS, Sim};
use crate::probe::Probe;
use crate::source::Source;

impl<F: Transport, A: Source, P: Probe> Sim<F, A, P> {
    /// Schedules the first report, if the probe records progress.
    pub(super) fn schedule_progress(&mut self) {
        if let Some(interval) = self.probe.progress_interval() {
            self.push_other(Time::ZERO + interval, PROGRESS);
        }
    }

    /// Reports the progress of the messages that are not over, and schedules the next report.
    pub(super) fn report_progress(&mut self) {
        self.show_progress();
        let interval = self.probe.progress_interval().expect("reports have an interval");
        self.push_other(self.now + interval, PROGRESS);
    }

    pub(super) fn show_progress(&mut self) {
        if self.probe.progress_interval().is_some() {
            self.probe.on_progress(self.now, self.ledger.open());
            let Self { stations, probe, ledger, now, .. } = self;
            for (number, station) in stations.iter() {
                station.endpoint.gauges(&mut |gauge| {
                    let flow = gauge.msg.and_then(|msg| ledger.number(msg));
                    probe.on_gauge(*now, NodeId::new(number), flow, &gauge);
                });
            }
        }
    }
}
