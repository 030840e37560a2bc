//! Random plans over the whole schema and every transport. Each is rejected with a message, or runs
//! to an end in which every flow has a fate. No run fails if there was no fault.
//!
//! `RAMPMETER_PLANS` is how many are tried; 2000 if it is not set.

mod causes;
mod draw;
mod progress;
mod threads;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use rampmeter_exp::{Observer, Plan, Progress, Registry, RunStatus, plan_schema, run};
use rampmeter_testkit::here;
use rampmeter_testkit::suite::each_seed;

use draw::random_plan;

/// Events after which a run is cut short.
const EVENTS_MAX: u64 = 400_000;

/// Ends a run that has become long.
struct Limit;

impl Observer for Limit {
    fn on_progress(&mut self, progress: &Progress) -> bool {
        progress.events < EVENTS_MAX
    }
}

/// Adds a key to the table `run` of a plan.
fn with_run_key(text: &str, key: &str) -> String {
    match text.contains("[run]\n") {
        true => text.replacen("[run]\n", &format!("[run]\n{key}\n"), 1),
        false => format!("{text}\n[run]\n{key}\n"),
    }
}

#[test]
fn random_plans_are_refused_or_run_to_an_end() {
    let n = std::env::var("RAMPMETER_PLANS").ok();
    let n = n.map_or(2_000, |text| text.parse().expect("RAMPMETER_PLANS is a number"));
    let registry = Registry::builtin();
    let (transports, schema) = (registry.about(), plan_schema(&registry));
    let ran = RefCell::new(BTreeMap::<String, u64>::new());
    let refused = Cell::new(0);
    each_seed(here!(), "random_plans_are_refused_or_run_to_an_end", 0..n, |seed| {
        let (text, has_faults) = random_plan(seed, &transports, &schema);
        let text = if seed % 3 == 0 { with_run_key(&text, "blame = true") } else { text };
        let plan = Plan::from_toml(&text, "plan", &registry)
            .and_then(|plan| plan.check("plan", Path::new(".")));
        let plan = match plan {
            Ok(plan) => plan,
            Err(error) => {
                let message = error.to_string();
                assert!(message.contains("got"), "{message}\n{text}");
                refused.set(refused.get() + 1);
                return;
            }
        };
        let out = tempfile::tempdir().unwrap();
        let to_end = AssertUnwindSafe(|| run(&plan, out.path(), &mut Limit));
        let Ok(summary) = catch_unwind(to_end) else { panic!("panics:\n{text}") };
        let summary = summary.unwrap();
        let flows = &summary.flows;
        let ended = flows.delivered + flows.failed + flows.rejected + flows.unfinished;
        assert_eq!(flows.submitted, ended, "{flows:?}\n{text}");
        let has_warning = plan.warnings().iter().any(|warning| warning.code == "clock-drift");
        let may_fail = has_faults || has_warning;
        assert!(flows.failed == 0 || may_fail, "flows fail: {flows:?}\n{text}");
        if matches!(summary.status, RunStatus::Finished | RunStatus::Incomplete) {
            assert_eq!(flows.unfinished, 0, "{text}");
            let lost = flows.failed + flows.rejected;
            assert!(flows.not_started == 0 || lost > 0, "{flows:?}\n{text}");
        }
        let of_collectives: u64 = summary.collectives.iter().map(|round| round.flows).sum();
        assert!(flows.submitted + flows.not_started >= of_collectives, "{flows:?}\n{text}");
        for round in &summary.collectives {
            // No transport is faster than light; reordering links do not slow packets down.
            let over = round.lower_bound_ratio.unwrap_or(1.0);
            assert!(over >= 1.0, "{round:?}\n{text}");
        }
        progress::check(&summary, out.path(), &text);
        causes::check(out.path(), &text);
        let name = plan.plan().transport.name().to_owned();
        *ran.borrow_mut().entry(name).or_default() += 1;
    });
    if n >= 2_000 {
        let ran = ran.into_inner();
        assert_eq!(ran.len(), transports.len(), "{ran:?}");
        assert!(ran.values().sum::<u64>() > n / 2 && refused.get() > n / 20, "{ran:?}");
    }
}
