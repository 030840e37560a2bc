//! Congestion control: how much a connection may have in flight.
//!
//! A [`CongestionControl`] is notified of acknowledgements, losses, echoed marks and timeouts, and
//! answers with a window in bytes. It does not detect losses and does not choose segments to
//! retransmit.

mod algorithm;
mod cubic;
mod dctcp;
mod hystart;
mod reno;

use rampmeter_types::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use algorithm::{AckEffect, CongestionControl, ControlParams, SlowStartExit};
pub use cubic::Cubic;
pub use dctcp::Dctcp;
pub use hystart::{Growth, HyStart};
pub use reno::NewReno;

/// Congestion control of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Half the window after a loss, a segment more each round trip (RFC 5681, RFC 6582).
    NewReno,
    /// Seven tenths of the window after a loss, then a cubic function of time (RFC 9438).
    Cubic,
    /// The window is cut by the share of marked bytes (RFC 8257).
    Dctcp,
}

/// The congestion control that a setting names.
#[derive(Clone, Debug)]
pub enum Control {
    /// NewReno.
    NewReno(NewReno),
    /// Cubic. In a box, as it has most state.
    Cubic(Box<Cubic>),
    /// DCTCP.
    Dctcp(Dctcp),
}

impl Control {
    /// Creates the control of `algorithm`.
    pub fn new(algorithm: Algorithm, start: &ControlParams) -> Self {
        match algorithm {
            Algorithm::NewReno => Self::NewReno(NewReno::new(start)),
            Algorithm::Cubic => Self::Cubic(Box::new(Cubic::new(start))),
            Algorithm::Dctcp => Self::Dctcp(Dctcp::new(start)),
        }
    }
}

/// Hands a call on to whichever it is.
macro_rules! whichever {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Control::NewReno($inner) => $call,
            Control::Cubic($inner) => $call,
            Control::Dctcp($inner) => $call,
        }
    };
}

impl CongestionControl for Control {
    fn cwnd(&self) -> u64 {
        whichever!(self, inner => inner.cwnd())
    }

    fn ssthresh(&self) -> u64 {
        whichever!(self, inner => inner.ssthresh())
    }

    fn on_ack(&mut self, acked: &AckEffect) {
        whichever!(self, inner => inner.on_ack(acked));
    }

    fn on_loss(&mut self, now: Time, in_flight: u64) {
        whichever!(self, inner => inner.on_loss(now, in_flight));
    }

    fn on_echo(&mut self, now: Time, in_flight: u64) {
        whichever!(self, inner => inner.on_echo(now, in_flight));
    }

    fn on_timeout(&mut self, now: Time, in_flight: u64, is_first: bool) {
        whichever!(self, inner => inner.on_timeout(now, in_flight, is_first));
    }

    fn on_idle(&mut self, initial: u64) {
        whichever!(self, inner => inner.on_idle(initial));
    }
}
