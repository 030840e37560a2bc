//! Files of a user's own distribution.
//!
//! One point per line: a size, white space or a comma, and the cumulative probability as a fraction
//! or, if the last one is 100, in percent. Files in the format of ns-2 and YAPS, which have a column that
//! nothing reads between the two, are accepted. Empty lines and lines that start with `#` are
//! skipped.

use std::fs;
use std::path::Path;

use rampmeter_core::Bytes;

use super::{Shape, SizeDist, SizeError};

/// Reads the distribution in `file`, whose sizes are in `unit`s.
///
/// # Errors
/// Names the file and the line, what was expected there and what is there.
pub fn read_cdf(file: &Path, shape: Shape, unit: Bytes) -> Result<SizeDist, SizeError> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file)
        .map_err(|source| SizeError::Read { file: name.clone(), source })?;
    parse(&name, &text, shape, unit)
}

fn parse(name: &str, text: &str, shape: Shape, unit: Bytes) -> Result<SizeDist, SizeError> {
    let mut placed = Vec::new();
    for (idx, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place = format!("{name}:{}", idx + 1);
        let (at, cdf) = parse_line(&place, line)?;
        placed.push((place, at, cdf));
    }
    if placed.last().is_some_and(|&(_, _, cdf)| cdf == 100.0) {
        for (_, _, cdf) in &mut placed {
            *cdf /= 100.0;
        }
    }
    SizeDist::from_placed(placed.into_iter(), name, shape, unit)
}

fn parse_line(place: &str, line: &str) -> Result<(f64, f64), SizeError> {
    let wrong = |expected, got: &str| SizeError::Point {
        place: place.to_owned(),
        expected,
        got: format!("\"{got}\""),
    };
    let fields = line.split(|c: char| c.is_whitespace() || c == ',');
    let fields: Vec<&str> = fields.filter(|field| !field.is_empty()).collect();
    let (at, cdf) = match fields[..] {
        [at, cdf] | [at, _, cdf] => (at, cdf),
        _ => return Err(wrong("a size and a cumulative probability", line)),
    };
    Ok((
        at.parse().map_err(|_| wrong("a size", at))?,
        cdf.parse().map_err(|_| wrong("a cumulative probability", cdf))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse("sizes.txt", text, Shape::Linear, Bytes::new(1)).unwrap_err().to_string()
    }

    #[test]
    fn fractions_percent_three_columns_and_commas_read_alike() {
        let read = |text| parse("f", text, Shape::Linear, Bytes::new(1)).unwrap();
        let plain = read("# sizes\n1000 0.25\n\n3000 1\n");
        assert_eq!(plain, read("1000 25\n3000 100\n"));
        assert_eq!(plain, read("1000 1 .25\n3000 1 1.0"));
        assert_eq!(plain, read("1000,0.25\n3000, 1\n"));
        assert_eq!(plain.mean_bytes(), 0.25 * 1000.0 + 0.75 * 2000.0);
    }

    #[test]
    fn errors_name_file_line_expectation_and_content() {
        assert_eq!(error("1 0.5\nabc 1\n"), "sizes.txt:2: expected a size, got \"abc\"");
        assert_eq!(
            error("1 0.5\n2 x\n"),
            "sizes.txt:2: expected a cumulative probability, got \"x\""
        );
        assert_eq!(
            error("1 0.5\n\n2\n"),
            "sizes.txt:3: expected a size and a cumulative probability, got \"2\""
        );
        assert_eq!(
            error("1 0.5\n2 0.4\n3 1\n"),
            "sizes.txt:2: expected a probability not below the one before, got 0.4"
        );
        assert_eq!(
            error("4 0.5\n2 1\n"),
            "sizes.txt:2: expected a size not below the one before, got 2"
        );
        assert_eq!(
            error("1 0.5\n2 0.9\n"),
            "sizes.txt:2: expected 1 as the last probability, got 0.9"
        );
        assert_eq!(
            error("1 0.5\n2 1.5\n"),
            "sizes.txt:2: expected a probability from 0 to 1, got 1.5"
        );
        assert_eq!(error("-1 1\n"), "sizes.txt:1: expected a size from 0 to 2^50 bytes, got -1");
        assert_eq!(error("nan 1\n"), "sizes.txt:1: expected a size from 0 to 2^50 bytes, got NaN");
        assert_eq!(error("# nothing\n"), "sizes.txt: expected at least one point, got none");
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = read_cdf(Path::new("/nowhere/cdf.txt"), Shape::Linear, Bytes::new(1));
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("/nowhere/cdf.txt: cannot read the distribution: "));
    }
}
