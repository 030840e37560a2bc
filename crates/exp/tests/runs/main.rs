//! Plans: their errors, their runs against recordings and bounds, and plans drawn at random.

mod bad_input;
mod bounds;
mod collectives;
mod healthy_networks;
mod homa_replay;
mod host_names;
mod patterns;
mod random_plans;
mod replay;
mod two_rates;
mod warnings;
