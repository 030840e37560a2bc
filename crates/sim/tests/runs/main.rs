//! The fabric against theory, lemmas and hand-made cases.

#[path = "../common/mod.rs"]
mod common;
mod deadlock;
mod fair;
mod forward;
mod lemma;
mod pfc;
mod rails;
mod theory;
