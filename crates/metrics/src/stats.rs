//! Means over seeds, with their spread.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// The mean of a value over independent runs, and how far it may be off.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Runs.
    pub n: u64,
    /// The mean over them.
    pub mean: f64,
    /// Sample standard deviation between runs; `None` of a single one.
    pub std_dev: Option<f64>,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t; `None` of a
    /// single run.
    pub half_width: Option<f64>,
    /// The smallest value.
    pub min: f64,
    /// The largest value.
    pub max: f64,
}

impl Spread {
    /// The spread of `values`, one a run; `None` of none.
    pub fn of(values: &[f64]) -> Option<Self> {
        let min = values.iter().copied().reduce(f64::min)?;
        let max = values.iter().copied().reduce(f64::max)?;
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let std_dev = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
        let half_width = std_dev.and_then(|dev| Some(t_95(n - 1.0)? * dev / n.sqrt()));
        Some(Self { n: values.len() as u64, mean, std_dev, half_width, min, max })
    }
}

/// The two-sided 95 % quantile of Student's t; `None` without a degree of freedom.
pub(crate) fn t_95(freedom: f64) -> Option<f64> {
    StudentsT::new(0.0, 1.0, freedom).ok().map(|t| t.inverse_cdf(0.975))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_the_tables() {
        for (freedom, t) in [(1.0, 12.7062), (2.0, 4.3027), (4.0, 2.7764), (29.0, 2.0452)] {
            let ours = t_95(freedom).unwrap();
            assert!((ours - t).abs() < 1e-3, "{freedom}: {ours}");
        }
        let spread = Spread::of(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!((spread.n, spread.mean, spread.std_dev), (3, 2.0, Some(1.0)));
        assert!((spread.half_width.unwrap() - 4.3027 / 3f64.sqrt()).abs() < 1e-3);
        assert_eq!((spread.min, spread.max), (1.0, 3.0));
    }

    #[test]
    fn a_single_run_has_no_spread() {
        let spread = Spread::of(&[1.5]).unwrap();
        assert_eq!((spread.mean, spread.std_dev, spread.half_width), (1.5, None, None));
        assert_eq!(Spread::of(&[]), None);
    }
}
