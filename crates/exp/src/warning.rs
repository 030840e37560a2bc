//! Warnings: a code for programs, and a sentence for people.

/// A likely mistake in a plan, or a reason to doubt a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Its kind, one of [`WARNING_CODES`].
    pub code: &'static str,
    /// The sentence.
    pub text: String,
}

/// The warnings of a plan or run, in the order in which they are shown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings(Vec<Warning>);

impl Warnings {
    /// Adds sentences of one kind.
    ///
    /// # Panics
    /// If the code is none of [`WARNING_CODES`].
    pub(crate) fn add(&mut self, code: &'static str, texts: impl IntoIterator<Item = String>) {
        for text in texts {
            assert!(WARNING_CODES.contains(&code), "{code} is no code of a warning");
            self.0.push(Warning { code, text });
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Warning> {
        self.0
    }
}

/// The codes of all warnings, which the package explains in `explanations.toml`.
pub const WARNING_CODES: [&str; 46] = [
    "alike-batches",
    "clock-offset",
    "common-time",
    "cut-off-by-drain",
    "deadlock",
    "delayed-paths",
    "drain-below-ideal",
    "far-hosts",
    "few-flows",
    "few-samples",
    "foreign-preset",
    "hosts-cut-off",
    "ignored-faults",
    "ignored-path-choice",
    "limited-table",
    "many-port-rates",
    "many-samples",
    "narrow-core",
    "narrow-inner-links",
    "never-marks",
    "no-flows",
    "not-delivered",
    "not-started",
    "one-endpoint",
    "one-path",
    "one-sample",
    "one-slot-rate",
    "order-lost",
    "overload",
    "overload-while-down",
    "partial-pairs",
    "pfc-memory",
    "retransmissions",
    "risen-rates",
    "short-drain",
    "short-run",
    "short-warm-up",
    "slow-path",
    "slow-recovery",
    "slow-returns",
    "slower-than-slots",
    "topology-note",
    "unequal-links",
    "warm-up-of-changing-load",
    "wide-interval",
    "workload-note",
];
