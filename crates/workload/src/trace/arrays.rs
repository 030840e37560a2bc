//! Columns of Arrow tables as numbers and texts.

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use super::number::Number;

/// The numbers of a column; `None` if there is none.
pub(super) type Column = Vec<Option<Number>>;

/// Returns the numbers of `array`; `None` if it holds anything else. NaN in a column of
/// floating-point numbers is a missing value, as pandas writes it.
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

/// Numbers of the rows on which a row depends.
#[derive(Clone, Debug)]
pub(super) enum Ids {
    Numbers(Column),
    Text(String),
}

/// Numbers of the rows on which each row depends.
pub(super) type DependencyRows = Vec<Ids>;

/// Returns the ids of `array`: lists of numbers, texts, or single numbers; `None` if it holds
/// anything else.
pub(super) fn after(array: &ArrayRef) -> Option<DependencyRows> {
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
