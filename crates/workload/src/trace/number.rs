//! Numbers of traces, of any type of column.

use std::fmt;

/// The latest time of a trace.
pub(super) const PS_MAX: u64 = 1 << 63;

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Value of a column of integers.
    #[cfg_attr(not(feature = "parquet"), expect(dead_code, reason = "of Parquet alone"))]
    Whole(i128),
    /// Value of a column of floating-point numbers.
    Real(f64),
}

impl Number {
    /// Returns the number, if it is whole and not negative. Floating-point numbers must be below
    /// 2^53, as larger ones are not exact.
    pub(super) fn whole(self) -> Option<u64> {
        match self {
            Self::Whole(n) => n.try_into().ok(),
            Self::Real(x) => (x.fract() == 0.0 && (0.0..REAL_MAX).contains(&x)).then_some(x as u64),
        }
    }

    /// Returns the picoseconds of this number of units of `unit_ps`, rounded to the nearest
    /// picosecond.
    pub(super) fn ps(self, unit_ps: u64) -> Option<u64> {
        match self {
            Self::Whole(n) => {
                u64::try_from(n).ok()?.checked_mul(unit_ps).filter(|&ps| ps <= PS_MAX)
            }
            Self::Real(x) => {
                let ps = (x * unit_ps as f64).round();
                (0.0..PS_MAX as f64).contains(&ps).then_some(ps as u64)
            }
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(n) => n.fmt(f),
            Self::Real(x) => x.fmt(f),
        }
    }
}

const REAL_MAX: f64 = (1u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_floating_point_numbers_are_integers() {
        assert_eq!(Number::Real(1460.0).whole(), Some(1460));
        for x in [1.5, -1.0, REAL_MAX, f64::INFINITY] {
            assert_eq!(Number::Real(x).whole(), None, "{x}");
        }
        assert_eq!(Number::Whole(-1).whole(), None);
        assert_eq!(Number::Whole(u64::MAX.into()).whole(), Some(u64::MAX));
    }

    #[test]
    fn times_round_to_the_picosecond_and_end_at_two_to_the_63() {
        assert_eq!(Number::Real(0.0246).ps(1_000_000), Some(24_600));
        assert_eq!(Number::Whole(7).ps(1000), Some(7000));
        for time in [Number::Real(-0.1), Number::Real(1e19), Number::Whole(-1)] {
            assert_eq!(time.ps(1_000_000), None, "{time}");
        }
        assert_eq!(Number::Whole(i128::from(PS_MAX)).ps(2), None);
    }
}
