//! The reader of plans accepts any text or reports an error.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use rampmeter_exp::{Plan, Registry};

fuzz_target!(|text: &str| {
    if let Ok(plan) = Plan::from_toml(text, "plan", &Registry::builtin()) {
        let _ = plan.check("plan", Path::new("/nonexistent"));
    }
});
