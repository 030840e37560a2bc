//! Transports in whole simulations, one module each, and their packets.

mod capton;
mod central;
mod cosy;
mod dcpim;
mod fastpass;
mod fastpod;
mod fastpod_datacenter;
mod fastpod_faults;
mod hold;
mod homa;
mod hpcc;
mod hyline;
mod ndp;
mod pfabric;
mod phost;
mod pias;
mod sird;
mod wire;
