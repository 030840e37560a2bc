//! Warnings of plans, over all transports.

mod distances;
mod link_states;
mod path_choice;
