//! Workloads that are stationary, and those whose load changes.

use super::plan;
use crate::Process;

/// Returns a part with a load, and its start or end.
fn part(load: f64, keys: &str) -> String {
    format!("{{ pattern = 'all-to-all', sizes = 'imc10', load = {load}{keys} }}")
}

fn process_of_mix(keys: &str, parts: &[String]) -> Process {
    let text = format!("pattern = 'mix'\n{keys}\nparts = [{}]", parts.join(", "));
    plan(&text).unwrap().process()
}

#[test]
fn a_mix_is_stationary_if_its_parts_have_one_period() {
    let free = part(0.3, "");
    let periodic = part(0.3, ", on-us = 10.0, off-us = 20.0");
    let overlay = "{ pattern = 'incast-overlay', sizes = 'imc10', load = 0.2, fan-in = 8 }";
    for keys in ["flows = 1000", "until-us = 500.0", "flows = 1000\nuntil-us = 500.0"] {
        let parts = [part(0.1, ""), free.clone(), periodic.clone(), overlay.to_owned()];
        assert_eq!(process_of_mix(keys, &parts), Process::Poisson, "{keys}");
    }
    let late = |load| part(load, ", start-us = 100.0");
    assert_eq!(process_of_mix("flows = 1000", &[late(0.1), late(0.3)]), Process::Poisson);
    let until = part(0.2, ", until-us = 500.0");
    assert_eq!(process_of_mix("until-us = 500.0", &[until, free.clone()]), Process::Poisson);
    // Three times the load has three times the flows.
    let counted = [part(0.1, ", flows = 1000"), part(0.3, ", flows = 3000")];
    assert_eq!(process_of_mix("", &counted), Process::Poisson);
}

#[test]
fn a_mix_of_parts_with_different_times_changes_its_load() {
    let free = part(0.3, "");
    for other in [", start-us = 100.0", ", until-us = 300.0", ", flows = 10"] {
        for part in [part(0.1, other), part(0.1, &format!("{other}, on-us = 10.0, off-us = 20.0"))]
        {
            let parts = [free.clone(), part];
            assert_eq!(process_of_mix("until-us = 500.0", &parts), Process::Changing, "{other}");
            assert_eq!(process_of_mix("flows = 100000", &parts), Process::Changing, "{other}");
            let inner = format!("{{ pattern = 'mix', parts = [{}] }}", parts[1]);
            let nested = [free.clone(), inner];
            assert_eq!(process_of_mix("until-us = 500.0", &nested), Process::Changing, "{other}");
        }
    }
    let counted = [part(0.3, ", flows = 1000"), part(0.1, ", flows = 3000")];
    assert_eq!(process_of_mix("", &counted), Process::Changing);
}

#[test]
fn bursts_in_a_mix_make_it_one_sample() {
    let burst = "{ pattern = 'incast', fan = 8, flow-bytes = 1000 }".to_owned();
    let parts = [part(0.3, ""), part(0.1, ", start-us = 100.0"), burst];
    assert_eq!(process_of_mix("until-us = 500.0", &parts), Process::Bursts);
}
