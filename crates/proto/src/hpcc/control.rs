//! Algorithm 1: the window of one flow.
//!
//! The problem: a sender should fill its path within a round trip or two, and keep queues near
//! zero.
//!
//! The simple way reacts to losses, marks or delays. Each of these needs a queue first. None shows
//! by how much a link is overloaded, so that windows are searched for in small steps.
//!
//! The present way computes the window from telemetry. A link's use is u = queue / (B T) + rate /
//! B. Its rate is that of the bytes it has sent between two acknowledgements' records. The fullest
//! link of the path counts, smoothed over T, as U. If U is at least eta, or after `max-stage`
//! additive steps, the window changes multiplicatively: W = W^c / (U / eta) + W_AI. Otherwise it
//! changes additively: W = W^c + W_AI. Eta below one leaves room, so that queues drain. W_AI lets
//! flows converge to equal shares.
//!
//! Each acknowledgement computes W from the *reference window* W^c, which changes once a round
//! trip. So acknowledgements of one round trip do not react to the same queue twice
//! (`a_round_trip_of_acknowledgements_cuts_the_reference_once`).
//!
//! Hazards: use is a difference of two records, so both must be of the same path. A record of
//! another path is remembered but changes nothing. The shorter of two queues counts, since a burst
//! at one instant is not congestion (`the_fullest_link_counts_with_the_shorter_of_two_queues`).
//! Records wrap (`differences_survive_the_wrap_of_time_and_bytes`). W is at most the first window,
//! which the pair's links carry (`the_window_is_at_most_the_capacity_of_the_hosts_link`). The
//! sequence of windows is checked against the algorithm as printed
//! (`windows_are_those_of_the_algorithm_as_printed`).

use rampmeter_types::Span;

use super::config::{Hpcc, Windows};
use super::int::Records;

/// Telemetry as an acknowledgement brings it.
#[derive(Clone, Copy, Debug)]
pub struct AckTelemetry<'a> {
    /// The path.
    pub path: u16,
    /// The records of its ports.
    pub records: &'a Records,
}

/// The congestion control of one flow. Bytes are those of the wire.
#[derive(Clone, Debug)]
pub struct Control {
    /// The first window and the largest, and the additive step.
    windows: Windows,
    /// The window W.
    window: f64,
    /// The reference window W^c.
    reference: f64,
    /// The use of the fullest link, U.
    utilisation: f64,
    /// Additive steps since the last multiplicative one.
    stage: u32,
    /// The first packet whose acknowledgement changes the reference window.
    update_at: u32,
    /// The records of the last acknowledgement, L, and their path; `None` before the first.
    last: Option<(u16, Records)>,
}

impl Control {
    /// Returns the control of a flow with these windows (§3.3).
    pub fn new(windows: Windows) -> Self {
        let (window, reference) = (windows.max, windows.max);
        Self { windows, window, reference, utilisation: 1.0, stage: 0, update_at: 0, last: None }
    }

    /// Returns the unloaded round trip (T).
    pub fn rtt(&self) -> Span {
        self.windows.rtt
    }

    /// Returns the window W in bytes.
    #[inline]
    pub fn window(&self) -> f64 {
        self.window
    }

    /// Returns the smoothed use of the fullest link, U.
    pub fn utilisation(&self) -> f64 {
        self.utilisation
    }

    /// Takes the telemetry of an acknowledgement (procedure NewAck). All packets below `cumulative`
    /// have arrived, and `next` is the first that has not been sent. Returns false if it is of
    /// another path than the one before: nothing follows from it then.
    pub fn on_ack(
        &mut self,
        telemetry: AckTelemetry<'_>,
        cumulative: u32,
        next: u32,
        hpcc: &Hpcc,
    ) -> bool {
        let last = self.last.replace((telemetry.path, *telemetry.records));
        let Some((path, last)) = last else {
            self.update_at = next;
            return true;
        };
        let n_records = telemetry.records.as_slice().len();
        if path != telemetry.path || last.as_slice().len() != n_records || n_records == 0 {
            return false;
        }
        self.measure(&last, telemetry.records);
        let updates = cumulative > self.update_at;
        self.adjust(updates, hpcc);
        if updates {
            self.update_at = next;
        }
        true
    }

    /// Procedure MeasureInflight.
    fn measure(&mut self, last: &Records, records: &Records) {
        let rtt = self.windows.rtt.as_ps() as f64;
        let (mut fullest, mut over) = (0.0, 0.0);
        for (&now, &then) in records.as_slice().iter().zip(last.as_slice()) {
            let time = now.time_since(then).as_ps() as f64;
            let capacity = now.bytes_per_ps();
            if time == 0.0 || capacity == 0.0 {
                // The same packet twice, or a record that no switch has written.
                continue;
            }
            let queue = f64::from(now.queued().min(then.queued())) / (capacity * rtt);
            let usage = queue + f64::from(now.sent_since(then)) / (time * capacity);
            if usage > fullest {
                (fullest, over) = (usage, time);
            }
        }
        let weight = (over / rtt).min(1.0);
        self.utilisation = (1.0 - weight) * self.utilisation + weight * fullest;
    }

    /// Procedure ComputeWind.
    fn adjust(&mut self, updates: bool, hpcc: &Hpcc) {
        let is_multiplicative =
            self.utilisation >= hpcc.config.eta || self.stage >= hpcc.config.max_stage;
        let window = match is_multiplicative {
            true => self.reference / (self.utilisation / hpcc.config.eta) + self.windows.step,
            false => self.reference + self.windows.step,
        };
        // The links of the pair carry no more (§3.3).
        self.window = window.min(self.windows.max);
        if updates {
            self.stage = if is_multiplicative { 0 } else { self.stage + 1 };
            self.reference = self.window;
        }
    }
}
