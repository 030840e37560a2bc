//! Recognition of pods in the wiring of a network.

mod fat_tree;
mod one_pod;
mod pods;
mod ports;

#[cfg(test)]
mod tests;

pub(super) use fat_tree::arbiter_places;
pub use pods::{CoreSwitch, Pod, PodHost, Pods};
