//! Files of a user's own distribution.
//!
//! Each line is a point: a size, white space or a comma, and the cumulative probability.
//! Probabilities are fractions, or percent if the last one is 100. Files in the format of ns-2 and
//! YAPS, which have an ignored column between the two, are accepted. Empty lines and lines that
//! start with `#` are skipped.
//!
//! A first line with one number is the mean of the sizes: then the file is of `HomaSimulation`, and
//! only the listed sizes occur. A probability below the one before counts as that one, because
//! Homa's simulator selects the first size whose probability is not below the draw. Notes name such
//! points, and a mean that differs from that of the points.

use std::fs;
use std::path::Path;

use rampmeter_types::Bytes;

use super::{SizeDist, SizeError, SizeInterpolation};
use crate::trace::without_mark;

/// Reads the distribution in `file`, whose sizes are in `unit`s, and returns notes about it.
/// Without a `shape` only the listed sizes occur if the first line is a mean, as in Homa's files.
///
/// # Errors
/// Names the file and the line, and the expected and the actual value.
pub fn read_cdf(
    file: &Path,
    shape: Option<SizeInterpolation>,
    unit: Bytes,
) -> Result<(SizeDist, Vec<String>), SizeError> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file)
        .map_err(|source| SizeError::Read { file: name.clone(), source })?;
    parse(&name, &text, shape, unit)
}

fn parse(
    name: &str,
    text: &str,
    shape: Option<SizeInterpolation>,
    unit: Bytes,
) -> Result<(SizeDist, Vec<String>), SizeError> {
    let mut lines = without_mark(text)
        .lines()
        .zip(1..)
        .map(|(line, number)| (format!("{name}:{number}"), line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .peekable();
    let mean = lines.next_if(|(_, line)| line.parse::<f64>().is_ok_and(|mean| mean > 0.0));
    let mut placed = Vec::new();
    let mut has_three = false;
    for (place, line) in lines {
        let (at, cdf, n_columns) = parse_line(&place, line)?;
        has_three |= n_columns == 3;
        placed.push((place, at, cdf));
    }
    let largest = placed.iter().fold(0.0, |largest, &(_, at, _)| at.max(largest));
    if placed.last().is_some_and(|&(_, _, cdf)| cdf == 100.0) {
        for (_, _, cdf) in &mut placed {
            *cdf /= 100.0;
        }
    }
    let Some((place, mean)) = mean else {
        let sizes = SizeDist::from_located_points(
            placed.into_iter(),
            name,
            shape.unwrap_or(SizeInterpolation::Linear),
            unit,
        )?;
        let notes = packets(name, largest, unit).filter(|_| has_three);
        return Ok((sizes, notes.into_iter().collect()));
    };
    let mut notes: Vec<String> = raise(&mut placed).into_iter().collect();
    let sizes = SizeDist::from_located_points(
        placed.into_iter(),
        name,
        shape.unwrap_or(SizeInterpolation::Steps),
        unit,
    )?;
    let of_points = sizes.mean_bytes() / unit.get() as f64;
    let stated = mean.parse().unwrap_or(of_points);
    if (of_points - stated).abs() > MEAN_SLACK * stated {
        notes.push(format!(
            "{place}: the mean is {stated}, but that of the points is {}",
            (of_points * 10.0).round() / 10.0
        ));
    }
    // Sizes of remote procedure calls are small, too.
    notes.extend(packets(name, largest, unit).filter(|_| of_points >= MEAN_OF_CALLS));
    Ok((sizes, notes))
}

/// Returns a question if sizes may be numbers of packets, which files of the formats of ns-2 and
/// `HomaSimulation` often have.
fn packets(name: &str, largest: f64, unit: Bytes) -> Option<String> {
    (unit.get() == 1 && largest < FEW_BYTES).then(|| {
        format!(
            "{name}: sizes are read as bytes, the largest is {largest}: are they packets? Then set \
             unit = \"packets\""
        )
    })
}

/// Raises each probability to that of the point before, and returns a note about the first that
/// was below.
fn raise(placed: &mut [(String, f64, f64)]) -> Option<String> {
    let (mut before, mut note, mut n) = (0.0, None, 0);
    for (place, _, cdf) in placed {
        if *cdf < before {
            note.get_or_insert_with(|| format!("{place}: the probability {cdf} is below {before}"));
            n += 1;
            *cdf = before;
        }
        before = *cdf;
    }
    note.map(|note| format!("{note}; {n} such points never occur, as in Homa's simulator"))
}

/// Reads a size, its cumulative probability and the number of columns.
fn parse_line(place: &str, line: &str) -> Result<(f64, f64, usize), SizeError> {
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
        fields.len(),
    ))
}

/// Maximum relative difference between a stated mean and that of the points without a note: files
/// have rounded probabilities.
const MEAN_SLACK: f64 = 0.01;
/// Largest messages of usual distributions are larger, in bytes.
const FEW_BYTES: f64 = 1e6;
/// Mean in bytes above which calls are not small.
const MEAN_OF_CALLS: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse("sizes.txt", text, None, Bytes::new(1)).unwrap_err().to_string()
    }

    #[test]
    fn fractions_percent_three_columns_and_commas_read_alike() {
        let read = |text| parse("f", text, None, Bytes::new(1)).unwrap().0;
        let plain = read("# sizes\n1000 0.25\n\n3000 1\n");
        assert_eq!(plain, read("1000 25\n3000 100\n"));
        assert_eq!(plain, read("1000 1 .25\n3000 1 1.0"));
        assert_eq!(plain, read("1000,0.25\n3000, 1\n"));
        assert_eq!(plain, read("\u{feff}1000,0.25\r\n3000,1\r\n"));
        assert_eq!(plain.mean_bytes(), 0.25 * 1000.0 + 0.75 * 2000.0);
    }

    #[test]
    fn a_first_line_with_one_number_is_the_mean_and_only_listed_sizes_occur() {
        let read = |text, shape| parse("f", text, shape, Bytes::new(1)).unwrap();
        let text = "550\n\n100  0.5\n1000\t1.0\n";
        let (sizes, notes) = read(text, None);
        assert_eq!((sizes.mean_bytes(), sizes.shape()), (550.0, SizeInterpolation::Steps));
        assert!(notes.is_empty());
        let (linear, notes) = read(text, Some(SizeInterpolation::Linear));
        assert_eq!(linear.mean_bytes(), 0.5 * 100.0 + 0.5 * 550.0);
        assert_eq!(notes, ["f:1: the mean is 550, but that of the points is 325"]);
    }

    /// The file of DCTCP's sizes has such points.
    #[test]
    fn a_falling_probability_is_a_size_that_never_occurs() {
        let text = "250\n100 0.5\n200 0.4\n400 1\n";
        let (sizes, notes) = parse("f", text, None, Bytes::new(1)).unwrap();
        assert_eq!(sizes.mean_bytes(), 250.0);
        let note = "f:3: the probability 0.4 is below 0.5; 1 such points never occur, as in \
                    Homa's simulator";
        assert_eq!(notes, [note]);
    }

    /// pFabric's files have three columns, and sizes in packets of 1460 bytes.
    #[test]
    fn small_sizes_in_formats_that_often_count_packets_are_questioned() {
        let notes = |text: &str, unit| parse("f", text, None, Bytes::new(unit)).unwrap().1;
        let text = "6 1 0.15\n667 1 0.7\n20000 1 1\n";
        let question = "f: sizes are read as bytes, the largest is 20000: are they packets? Then \
                        set unit = \"packets\"";
        assert_eq!(notes(text, 1), [question]);
        assert!(notes(text, 1_460).is_empty());
        assert!(notes("6 0.15\n20000 1\n", 1).is_empty());
        assert_eq!(notes("10003\n6 0.5\n20000 1\n", 1), [question]);
        assert!(notes("53\n6 0.5\n100 1\n", 1).is_empty());
    }

    #[test]
    fn errors_of_size_files_name_file_line_expectation_and_content() {
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
        let error = read_cdf(Path::new("/nowhere/cdf.txt"), None, Bytes::new(1));
        let message = error.unwrap_err().to_string();
        assert!(message.starts_with("/nowhere/cdf.txt: cannot read the distribution: "));
    }
}
