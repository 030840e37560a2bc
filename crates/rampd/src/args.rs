//! Values of options.

use std::str::FromStr;

/// Returns a parser of values of type `T`, which `expected` describes in errors.
pub(crate) fn parser<T: FromStr>(
    expected: &'static str,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync {
    move |text| text.parse().map_err(|_| format!("expected {expected}"))
}
