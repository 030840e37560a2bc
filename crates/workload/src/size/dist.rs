//! Distributions of message sizes.

use rampmeter_types::{Bytes, Rng};
use thiserror::Error;

use super::names::NAMES;

/// Interpolation between the points of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeInterpolation {
    /// Sizes are interpolated linearly and rounded to the nearest unit, at least one.
    Linear,
    /// Sizes are interpolated linearly and rounded up to whole units, as in public ns-2 scripts.
    RoundedUp,
    /// Only the listed sizes occur.
    Steps,
}

/// Reason why points are not a size distribution.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SizeError {
    /// A point or a line of a file is wrong.
    #[error("{place}: expected {expected}, got {got}")]
    Point {
        /// The point's number or the file and line.
        place: String,
        /// The values allowed there.
        expected: &'static str,
        /// The value in the file.
        got: String,
    },
    /// The file cannot be read.
    #[error("{file}: cannot read the distribution: {source}")]
    Read {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// No published distribution has this name.
    #[error("expected one of {}, got \"{got}\"", NAMES.join(", "))]
    UnknownName {
        /// The name.
        got: String,
    },
}

/// A distribution of message sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDist {
    points: Vec<Point>,
    pub(super) shape: SizeInterpolation,
    unit: Bytes,
    mean_units: f64,
}

impl SizeDist {
    /// Creates a distribution in which every message has `size` bytes, at least one.
    pub fn fixed(size: Bytes) -> Self {
        let units = size.get().max(1) as f64;
        Self::checked(vec![Point { at: units, cdf: 1.0 }], SizeInterpolation::Steps, Bytes::new(1))
    }

    /// Creates the distribution through `points` of (size in units, cumulative probability).
    ///
    /// # Errors
    /// Names the first point whose size or probability is out of range or falls, or the last one
    /// if its probability is not 1.
    pub fn new(
        points: &[(f64, f64)],
        shape: SizeInterpolation,
        unit: Bytes,
    ) -> Result<Self, SizeError> {
        let numbered = points.iter().enumerate();
        let placed = numbered.map(|(i, &(at, cdf))| (format!("point {}", i + 1), at, cdf));
        Self::from_located_points(placed, "the distribution", shape, unit)
    }

    /// Creates a distribution like [`SizeDist::new`], for points with their place in a file.
    pub(super) fn from_located_points(
        placed: impl Iterator<Item = (String, f64, f64)>,
        whole: &str,
        shape: SizeInterpolation,
        unit: Bytes,
    ) -> Result<Self, SizeError> {
        let wrong = |place: String, expected, got: f64| {
            Err(SizeError::Point { place, expected, got: got.to_string() })
        };
        let mut points: Vec<Point> = Vec::new();
        let mut last_place = whole.to_owned();
        for (place, at, cdf) in placed {
            let before = points.last().copied().unwrap_or(Point { at: 0.0, cdf: 0.0 });
            if !(at >= 0.0 && at * unit.get() as f64 <= SIZE_MAX) {
                return wrong(place, "a size from 0 to 2^50 bytes", at);
            }
            if at < before.at {
                return wrong(place, "a size not below the one before", at);
            }
            if !(0.0..=1.0).contains(&cdf) {
                return wrong(place, "a probability from 0 to 1", cdf);
            }
            if cdf < before.cdf {
                return wrong(place, "a probability not below the one before", cdf);
            }
            points.push(Point { at, cdf });
            last_place = place;
        }
        match points.last_mut() {
            None => Err(SizeError::Point {
                place: last_place,
                expected: "at least one point",
                got: "none".to_owned(),
            }),
            Some(last) if (last.cdf - 1.0).abs() > CDF_SLACK => {
                wrong(last_place, "1 as the last probability", last.cdf)
            }
            Some(last) => {
                last.cdf = 1.0;
                Ok(Self::checked(points, shape, unit))
            }
        }
    }

    fn checked(points: Vec<Point>, shape: SizeInterpolation, unit: Bytes) -> Self {
        let mean_units = mean_units(&points, shape);
        Self { points, shape, unit, mean_units }
    }

    /// Draws a size.
    pub fn sample(&self, rng: &mut Rng) -> Bytes {
        self.quantile(rng.uniform_unit())
    }

    /// Returns the exact mean of the samples of [`SizeDist::sample`].
    pub fn mean_bytes(&self) -> f64 {
        self.mean_units * self.unit.get() as f64
    }

    /// Returns the smallest size that at least the fraction `p` of messages does not exceed; `p` is
    /// clamped to 0 to 1.
    pub fn quantile(&self, p: f64) -> Bytes {
        let p = p.clamp(0.0, 1.0);
        // The last probability is 1, so there is always a point.
        let upper = self.points.partition_point(|point| point.cdf < p);
        let to = self.points[upper.min(self.points.len() - 1)];
        let units = match (self.shape, upper.checked_sub(1)) {
            (SizeInterpolation::Linear | SizeInterpolation::RoundedUp, Some(lower)) => {
                let from = self.points[lower];
                from.at + (to.at - from.at) * (p - from.cdf) / (to.cdf - from.cdf)
            }
            (SizeInterpolation::Linear | SizeInterpolation::RoundedUp, None)
            | (SizeInterpolation::Steps, _) => to.at,
        };
        let units = if self.shape == SizeInterpolation::RoundedUp { units.ceil() } else { units };
        Bytes::new(round_units(units) * self.unit.get())
    }

    /// Returns the nine sizes that split the messages into ten equal groups.
    pub fn deciles(&self) -> [Bytes; 9] {
        std::array::from_fn(|i| self.quantile((i + 1) as f64 / 10.0))
    }

    /// One byte or one packet.
    pub fn unit(&self) -> Bytes {
        self.unit
    }

    /// Returns the interpolation between the points.
    pub fn shape(&self) -> SizeInterpolation {
        self.shape
    }

    /// Returns the points as (size in units, cumulative probability).
    pub fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.points.iter().map(|point| (point.at, point.cdf))
    }
}

/// A size in units, and the probability of a size at most that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    at: f64,
    cdf: f64,
}

/// Returns the nearest whole unit, at least one.
pub(super) fn round_units(units: f64) -> u64 {
    ((units + 0.5).floor() as u64).max(1)
}

/// Returns the mean of rounded sizes, in units.
pub(super) fn mean_units(points: &[Point], shape: SizeInterpolation) -> f64 {
    let first = points[0];
    let mut mean = first.cdf * round_units(first.at) as f64;
    for pair in points.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let size = match shape {
            SizeInterpolation::Steps => round_units(to.at) as f64,
            SizeInterpolation::Linear if to.at > from.at => {
                (rounded_integral(to.at) - rounded_integral(from.at)) / (to.at - from.at)
            }
            SizeInterpolation::RoundedUp if to.at > from.at => {
                (ceil_integral(to.at) - ceil_integral(from.at)) / (to.at - from.at)
            }
            SizeInterpolation::Linear => round_units(to.at) as f64,
            SizeInterpolation::RoundedUp => to.at.ceil().max(1.0),
        };
        mean += (to.cdf - from.cdf) * size;
    }
    mean
}

/// Returns the integral from 0 to `x` of rounding to nearest, at least one. The integrand is 1 up
/// to 1.5, and n from n - 1/2 to n + 1/2 after that.
pub(super) fn rounded_integral(x: f64) -> f64 {
    let n = (x + 0.5).floor().max(1.0);
    // The whole steps below n are 3/2 + (2 + ... + (n - 1)), the last one n (x - n + 1/2).
    if n == 1.0 { x } else { 1.5 + (n * (n - 1.0) / 2.0 - 1.0) + n * (x - n + 0.5) }
}

/// Returns the integral from 0 to `x` of rounding up.
pub(super) fn ceil_integral(x: f64) -> f64 {
    let n = x.floor();
    n * (n + 1.0) / 2.0 + (x - n) * (n + 1.0)
}

/// The largest size in bytes that a distribution may contain: a pebibyte.
pub(super) const SIZE_MAX: f64 = (1u64 << 50) as f64;

/// Maximum distance of the last probability from 1, for tables that were printed with few digits.
pub(super) const CDF_SLACK: f64 = 1e-9;
