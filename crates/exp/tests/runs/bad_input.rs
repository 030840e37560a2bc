//! Broken input: every file of the corpus is refused with the message that it expects, and no text
//! makes the reader of plans panic.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use rampmeter_exp::{Plan, Registry};
use rampmeter_proto::keys::RENAMED_KEYS;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/bad")
}

fn check(text: &str, origin: &str) -> Result<(), String> {
    let plan = Plan::from_toml(text, origin, &Registry::builtin()).map_err(|e| e.to_string())?;
    plan.check(origin, &corpus()).map(|_| ()).map_err(|e| e.to_string())
}

#[test]
fn every_broken_plan_is_refused_with_a_precise_message() {
    let mut count = 0;
    for entry in std::fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "toml") {
            continue;
        }
        count += 1;
        let text = std::fs::read_to_string(&path).unwrap();
        // The comment at the head of the file, on one line.
        let head: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("# ")).collect();
        let head = head.join(" ");
        let expected = head.strip_prefix("expect: ");
        let expected = expected.unwrap_or_else(|| panic!("{path:?} names no expectation"));
        let name = path.file_name().unwrap().to_str().unwrap();
        let Err(message) = check(&text, name) else { panic!("{name} is accepted") };
        assert!(message.starts_with(name), "{name}: {message}");
        assert!(message.contains(expected), "{name}: {message}");
        assert!(!message.contains('\n'), "{name}: {message}");
    }
    assert!(count >= 40, "{count} broken plans");
}

/// A plan that is accepted, and the pieces that mutations are made of.
const GOOD: &str = "seed = 1\n[topology]\nkind = \"star\"\nhosts = 4\n[transport]\n\
    name = \"dcpim\"\n\
    [workload]\npattern = \"all-to-all\"\nsizes = \"imc10\"\nload = 0.5\nflows = 10\n";

#[test]
fn the_plan_that_mutations_start_from_is_good() {
    assert_eq!(check(GOOD, "plan"), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_mutation_of_a_plan_panics(
        edits in proptest::collection::vec((any::<u16>(), 0u8..4, "[ -~\n]{0,6}"), 1..6)
    ) {
        let mut text = GOOD.to_owned();
        for (at, kind, piece) in edits {
            let at = usize::from(at) % (text.len() + 1);
            match kind {
                0 => text.insert_str(at, &piece),
                1 => text.truncate(at),
                2 => text.replace_range(at..(at + piece.len()).min(text.len()), &piece),
                _ => {
                    let number = format!("{}", u64::from(u16::MAX) * at as u64);
                    text = text.replacen("4", &number, 1);
                }
            }
        }
        let _ = check(&text, "plan");
    }
}

/// A derived value with the former name of a key would suggest a key that plans refuse.
#[test]
fn derived_values_have_present_names() {
    let mut count = 0;
    for transport in Registry::builtin().about().iter().map(|about| about.name) {
        let text = format!(
            "transport.name = '{transport}'\ntopology = {{ kind = 'star', hosts = 4 }}\n\
             [workload]\npattern = 'all-to-all'\nsizes = 'imc10'\nload = 0.1\nflows = 10"
        );
        // Transports in Python have keys of their classes.
        let Ok(plan) = Plan::from_toml(&text, "plan", &Registry::builtin()) else { continue };
        let Ok(plan) = plan.check("plan", &corpus()) else { continue };
        count += 1;
        for name in plan.derived().keys().filter_map(|name| name.strip_prefix("transport.")) {
            let former = RENAMED_KEYS.iter().find(|key| key.is_of(transport) && key.old == name);
            assert_eq!(former, None, "{transport}");
        }
    }
    assert!(count >= 16, "{count} transports");
}
