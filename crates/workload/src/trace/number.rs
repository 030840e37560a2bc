//! Columns of numbers, of whatever type the writer of a table chose.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use std::fmt;

use super::decimal::PS_MAX;

/// A number of a table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// From a column of integers.
    Whole(i128),
    /// From a column of floating-point numbers.
    Real(f64),
}

/// The numbers of a column; `None` where there is none.
pub(super) type Column = Vec<Option<Number>>;

impl Number {
    /// The number, if it is whole and not negative. Floating-point numbers must be below 2^53,
    /// as larger ones are not exact.
    pub(super) fn whole(self) -> Option<u64> {
        match self {
            Self::Whole(n) => n.try_into().ok(),
            Self::Real(x) => (x.fract() == 0.0 && (0.0..REAL_MAX).contains(&x)).then_some(x as u64),
        }
    }

    /// So many units of `unit_ps` picoseconds, rounded to the nearest picosecond.
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

/// The numbers of `array`; `None` if it holds anything else. What is not a number in a column of
/// floating-point numbers is missing, as pandas writes it.
pub(super) fn numbers(array: &ArrayRef) -> Option<Column> {
    Some(match array.data_type() {
        DataType::Int8 => whole::<Int8Type>(array),
        DataType::Int16 => whole::<Int16Type>(array),
        DataType::Int32 => whole::<Int32Type>(array),
        DataType::Int64 => whole::<Int64Type>(array),
        DataType::UInt8 => whole::<UInt8Type>(array),
        DataType::UInt16 => whole::<UInt16Type>(array),
        DataType::UInt32 => whole::<UInt32Type>(array),
        DataType::UInt64 => whole::<UInt64Type>(array),
        DataType::Float32 => real::<Float32Type>(array),
        DataType::Float64 => real::<Float64Type>(array),
        _ => return None,
    })
}

/// Returns the texts of `array`; `None` if it holds anything else.
pub(super) fn texts(array: &ArrayRef) -> Option<Vec<Option<String>>> {
    let owned = |text: Option<&str>| text.map(str::to_owned);
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(owned).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(owned).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(owned).collect(),
        _ => return None,
    })
}

/// What a row waits for.
#[derive(Clone, Debug)]
pub(super) enum Ids {
    Numbers(Column),
    Text(String),
}

/// What each row waits for.
pub(super) type After = Vec<Ids>;

/// The ids of `array`: lists of numbers, texts, or single numbers; `None` if it holds anything else.
pub(super) fn after(array: &ArrayRef) -> Option<After> {
    let list = |values: Option<ArrayRef>| match values {
        None => Some(Ids::Numbers(Vec::new())),
        Some(values) if values.is_empty() => Some(Ids::Numbers(Vec::new())),
        Some(values) => numbers(&values).map(Ids::Numbers),
    };
    let text = |value: Option<&str>| Ids::Text(value.unwrap_or_default().to_owned());
    match array.data_type() {
        DataType::List(_) => array.as_list::<i32>().iter().map(list).collect(),
        DataType::LargeList(_) => array.as_list::<i64>().iter().map(list).collect(),
        DataType::Utf8 => Some(array.as_string::<i32>().iter().map(text).collect()),
        DataType::LargeUtf8 => Some(array.as_string::<i64>().iter().map(text).collect()),
        DataType::Utf8View => Some(array.as_string_view().iter().map(text).collect()),
        DataType::Null => Some(vec![Ids::Numbers(Vec::new()); array.len()]),
        _ => {
            let single =
                |number: Option<Number>| Ids::Numbers(number.map(Some).into_iter().collect());
            Some(numbers(array)?.into_iter().map(single).collect())
        }
    }
}

fn whole<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &ArrayRef) -> Column {
    let values = array.as_primitive::<T>().iter();
    values.map(|value| value.map(|n| Number::Whole(n.into()))).collect()
}

fn real<T: ArrowPrimitiveType<Native: Into<f64>>>(array: &ArrayRef) -> Column {
    let values = array.as_primitive::<T>().iter().map(|value| value.map(Into::into));
    values.map(|value| value.filter(|x: &f64| !x.is_nan()).map(Number::Real)).collect()
}

const REAL_MAX: f64 = (1u64 << 53) as f64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floating_point_numbers_are_whole_where_they_are_exact() {
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
