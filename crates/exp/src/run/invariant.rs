//! Broken invariants, for callers that must not end with them.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use rampmeter_sim::take_violation;
use thiserror::Error;

/// An invariant of this program does not hold: a mistake in it, not in a plan.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("an invariant is broken at {place}: {message}")]
pub struct InvariantViolation {
    /// File and line.
    pub place: String,
    /// The message of the panic.
    pub message: String,
    /// True if the ledger found it: a transport has reported an event that cannot be true.
    pub is_of_ledger: bool,
}

thread_local! {
    /// The place of this thread's panic; `None` if panics are not caught.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work`; a panic in it becomes an error with its place, and is not printed.
///
/// # Errors
/// [`InvariantViolation`] if `work` panics on this thread.
pub fn catch_violation<T>(work: impl FnOnce() -> T) -> Result<T, InvariantViolation> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_caught = PLACE.with_borrow_mut(|place| {
                place
                    .as_mut()
                    .map(|at| *at = info.location().map_or(String::new(), |l| l.to_string()))
            });
            if is_caught.is_none() {
                before(info);
            }
        }));
    });
    let outer = PLACE.replace(Some(String::new()));
    take_violation();
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    let place = PLACE.replace(outer).unwrap_or_default();
    result.map_err(|payload| InvariantViolation {
        place,
        message: text(payload.as_ref()),
        is_of_ledger: take_violation(),
    })
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_with_its_location() {
        let broken = catch_violation(|| assert_eq!(1 + 1, 3, "seed 7")).unwrap_err();
        assert!(broken.place.contains("invariant.rs:"), "{broken}");
        assert!(broken.message.contains("seed 7"), "{broken}");
        assert_eq!(catch_violation(|| 5), Ok(5));
    }

    #[test]
    fn violations_may_be_caught_inside_one_another() {
        let outer = catch_violation(|| {
            assert!(catch_violation(|| panic!("inner")).is_err());
            panic!("outer")
        });
        let Err(broken) = outer.map(|never: ()| never) else { panic!("no error") };
        assert_eq!(broken.message, "outer");
    }
}
