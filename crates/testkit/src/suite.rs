//! Tests of a test target: a body for every transport and preset of a catalogue.

use std::any::Any;
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};

use libtest_mimic::{Arguments, Trial};
use rampmeter_proto::{Catalogue, Keys, RegisteredTransport, Visitor};

/// A test target, for the command that runs it again.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The package.
    pub package: &'static str,
    /// The test target.
    pub test: &'static str,
}

/// The test target that this is written in.
#[macro_export]
macro_rules! here {
    () => {
        $crate::Target { package: env!("CARGO_PKG_NAME"), test: env!("CARGO_CRATE_NAME") }
    };
}

/// Test of every transport.
pub trait Body: Copy + Send + 'static {
    /// The first part of the tests' names.
    const NAME: &'static str;

    /// Tests one transport. A failure is a panic.
    fn test<T: RegisteredTransport>(self, case: &Case<T>);
}

/// A transport with a preset.
#[derive(Debug)]
pub struct Case<T: RegisteredTransport> {
    /// The preset.
    pub preset: &'static str,
    /// Parameters of the preset.
    pub keys: T::Keys,
    /// The name of the test.
    name: String,
    target: Target,
}

impl<T: RegisteredTransport> Case<T> {
    /// Tests something for every seed, for `RAMPMETER_SEEDS` of them, or for the one of
    /// `RAMPMETER_SEED`. A failure reports the command that repeats its seed.
    pub fn each_seed(&self, seeds: Range<u64>, test: impl Fn(u64)) {
        each_seed(self.target, &self.name, seeds, test);
    }
}

/// Tests something for every seed, as [`Case::each_seed`], for the test `name` of any target.
pub fn each_seed(target: Target, name: &str, seeds: Range<u64>, test: impl Fn(u64)) {
    let one = std::env::var("RAMPMETER_SEED").ok();
    let one = one.map(|text| text.parse().expect("RAMPMETER_SEED is a number"));
    let all = std::env::var("RAMPMETER_SEEDS").ok();
    let all = all.map(|text| text.parse().expect("RAMPMETER_SEEDS is a number"));
    let seeds = all.map_or(seeds.clone(), |n: u64| seeds.start..seeds.start + n);
    let seeds = one.map_or(seeds, |seed: u64| seed..seed + 1);
    for seed in seeds {
        let result = panic::catch_unwind(AssertUnwindSafe(|| test(seed)));
        if let Err(panicked) = result {
            panic!("{}", failure(target, name, seed, panicked.as_ref()));
        }
    }
}

/// Returns the message of a failure: the seed, the reason, and the command that repeats it.
fn failure(target: Target, name: &str, seed: u64, panicked: &(dyn Any + Send)) -> String {
    let why = panicked.downcast_ref::<String>().map(String::as_str);
    let why = why.or_else(|| panicked.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let Target { package, test } = target;
    format!(
        "seed {seed}: {why}\nIt is repeated by\n    RAMPMETER_SEED={seed} cargo test -p {package} \
         --test {test} {name} -- --include-ignored --nocapture\n"
    )
}

/// The tests of a target.
pub struct Suite {
    target: Target,
    trials: Vec<Trial>,
}

impl Suite {
    /// No tests yet.
    pub fn new(target: Target) -> Self {
        Self { target, trials: Vec::new() }
    }

    /// Adds a test of a body for every transport and preset: `faults::dcpim::paper`. All but the
    /// first preset of a transport are long tests, which need `-- --include-ignored`.
    #[must_use]
    pub fn each_preset<C: Catalogue, B: Body>(mut self, body: B) -> Self {
        C::visit(&mut CaseVisitor { suite: &mut self, body, as_preset: None });
        self
    }

    /// Adds a test of a body for the first preset of every transport, which is called `name`:
    /// `conformance::dcpim::udp`.
    #[must_use]
    pub fn each_transport<C: Catalogue, B: Body>(mut self, name: &'static str, body: B) -> Self {
        C::visit(&mut CaseVisitor { suite: &mut self, body, as_preset: Some(name) });
        self
    }

    /// Adds a single test.
    #[must_use]
    pub fn with_test(mut self, name: &str, test: fn()) -> Self {
        self.trials.push(Trial::test(name, move || {
            test();
            Ok(())
        }));
        self
    }

    /// Runs the tests that the command line selects, and ends the process.
    ///
    /// Panics without tests, since a suite that has lost its catalogue must not pass.
    pub fn run(self) -> ! {
        assert!(!self.trials.is_empty(), "no tests");
        libtest_mimic::run(&Arguments::from_args(), self.trials).exit()
    }
}

struct CaseVisitor<'a, B> {
    suite: &'a mut Suite,
    body: B,
    /// Name of the test of the first preset, if only that is tested.
    as_preset: Option<&'static str>,
}

impl<B: Body> Visitor for CaseVisitor<'_, B> {
    fn transport<T: RegisteredTransport>(&mut self) {
        let n = if self.as_preset.is_some() { 1 } else { T::Keys::PRESETS.len() };
        for (i, &(preset, keys)) in T::Keys::PRESETS[..n].iter().enumerate() {
            let name = format!("{}::{}::{}", B::NAME, T::NAME, self.as_preset.unwrap_or(preset));
            let (target, body) = (self.suite.target, self.body);
            let case = Case::<T> { preset, keys: keys(), name: name.clone(), target };
            let trial = Trial::test(name, move || {
                body.test(&case);
                Ok(())
            });
            self.suite.trials.push(trial.with_ignored_flag(i > 0));
        }
    }
}
