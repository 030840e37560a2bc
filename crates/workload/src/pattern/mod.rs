//! Traffic patterns: senders, receivers and times of messages.
//!
//! [`pairs`] chooses senders and receivers. [`poisson`] has the open-loop patterns, whose flows
//! arrive at random at a configured load. [`burst`], [`skewed_all_to_all`] and [`simultaneous`]
//! have those that release flows together, once or with a period. [`collective`] and [`rpc`] have
//! flows that depend on each other.

pub mod burst;
pub mod collective;
mod draw;
pub mod hosts;
pub mod pairs;
pub mod poisson;
pub mod rpc;
pub mod simultaneous;
pub mod skewed_all_to_all;
#[cfg(test)]
mod tests;

pub use hosts::HostSet;
