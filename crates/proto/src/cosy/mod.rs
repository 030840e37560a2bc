//! cosy (Agarwal, Cai, Agarwal, Shmoys, Vahdat: *Building a Partial Communication Synchrony
//! Abstraction on Asynchronous Datacenters: Fundamental Limits, Mechanisms, and Applications*).
//!
//! A message is delivered within a bound that is known when it is submitted, or rejected. Every
//! link is divided into K virtual links and every host has K slots. A receiver answers a request
//! with a rsvp, which reserves a virtual link on each link of a path that the switches choose; the
//! sender sends along that path at a K-th of the link's rate, which bounds every queue. A network
//! that has no path left turns a rsvp into a reject.
//!
//! * [`analysis`]: the bounds and the sustainable load of the paper's theorems
//! * [`config`]: parameters, the `paper` and `rsvp` presets, what follows from them
//! * [`wire`]: the packets
//! * [`CosySwitch`]: virtual links, the choice of paths, releases, rejects
//! * `sender`: requests, slots and their pace, the end of a message at its bound
//! * `receiver`: held requests, slots, failures seen from what does not come
//!
//! `docs/protocols/cosy.md` lists the packets, and what differs from the paper.

pub mod analysis;
pub mod config;
pub mod wire;

mod host;
mod receiver;
mod sender;
mod switch;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

pub use config::{Cosy, CosyConfig};
pub use host::CosyHost;
pub use switch::CosySwitch;

use std::sync::Arc;

use rampmeter_core::{Family, NoArbiter, SwitchFacts};

/// The cosy family.
#[derive(Clone, Copy, Debug)]
pub struct CosyFamily;

impl Family for CosyFamily {
    const NAME: &'static str = "cosy";
    type Config = Cosy;
    type Header = wire::CosyHeader;
    type Host = CosyHost;
    type Arbiter = NoArbiter<wire::CosyHeader, Cosy>;
    type Hop = CosySwitch;

    fn hop(config: &Arc<Cosy>, switch: SwitchFacts) -> CosySwitch {
        CosySwitch::new(config, switch)
    }
}

/// What a host counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CosyStats {
    /// Rsvps sent as a receiver.
    pub asked: u64,
    /// Rsvps that came back because the network had no path.
    pub blocked: u64,
    /// Rsvps that came back because the sender had no slot or nothing to send.
    pub busy: u64,
    /// Requests rejected as a receiver, because no slot was free in time.
    pub turned_away: u64,
    /// Failures inferred as a receiver, from packets that did not come when they had to.
    pub failures: u64,
}

impl CosyStats {
    /// Tells `each` every count with its name, in the order above.
    fn tell(self, each: &mut dyn FnMut(&'static str, u64)) {
        let Self { asked, blocked, busy, turned_away, failures } = self;
        let all = [
            ("asked", asked),
            ("blocked", blocked),
            ("busy", busy),
            ("turned_away", turned_away),
            ("failures", failures),
        ];
        all.into_iter().for_each(|(name, value)| each(name, value));
    }
}
