//! Records of comma-separated values, with the line in the file at which each begins.
//!
//! The reader of `csv` counts from the end of the record before. The second byte of CRLF, empty
//! lines and comments are not read yet there, so its number is too low. It does not count carriage
//! returns at all. Here every line ends with a line feed before it is parsed, and the line of a
//! record follows from its end.

use std::io::{self, Read};

use csv::{ReaderBuilder, StringRecord};

/// Records of a text in CSV. Lines end with LF, CRLF or CR; empty lines are skipped.
#[derive(Debug)]
pub struct Records<R> {
    reader: csv::Reader<LineFeeds<R>>,
    record: StringRecord,
}

impl<R: Read> Records<R> {
    /// Returns the records of `input`, the header among them. Lines that begin with `comment` are
    /// skipped.
    pub fn new(input: R, comment: Option<u8>) -> Self {
        Self::separated(input, comment, b',')
    }

    /// Returns the records of `input`, whose fields end with `separator`.
    pub fn separated(input: R, comment: Option<u8>, separator: u8) -> Self {
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(comment)
            .delimiter(separator)
            .from_reader(LineFeeds::new(input));
        Self { reader, record: StringRecord::new() }
    }

    /// Reads the next record; returns it and its line, from 1, or `None` at the end.
    ///
    /// # Errors
    /// A text that cannot be read or is not UTF-8.
    pub fn next_record(&mut self) -> Result<Option<(u64, &StringRecord)>, csv::Error> {
        if !self.reader.read_record(&mut self.record)? {
            return Ok(None);
        }
        let within: usize = self.record.iter().map(|field| field.matches('\n').count()).sum();
        // A quote that never closes has the end of the last line, too.
        let LineFeeds { n_returned, is_at_end, .. } = *self.reader.get_ref();
        let is_last = is_at_end && self.reader.position().byte() == n_returned;
        let is_open =
            is_last && self.record.iter().next_back().is_some_and(|it| it.ends_with('\n'));
        let line = self.reader.position().line() - u64::from(!is_open) - within as u64;
        // Errors of `csv` about this record name the line of its position.
        if let Some(mut position) = self.record.position().cloned() {
            position.set_line(line);
            self.record.set_position(Some(position));
        }
        Ok(Some((line, &self.record)))
    }
}

/// Returns the separator of the fields of a table with this header: a comma, or, in a header
/// without one, a semicolon or a tab.
pub fn separator(header: &str) -> u8 {
    let is_there = |separator: &u8| header.contains(char::from(*separator));
    *b",;\t".iter().find(|it| is_there(it)).unwrap_or(&b',')
}

/// Bytes of a byte-order mark and of one character: `csv` treats a mark alone as the end.
const START_BYTES: usize = 4;

/// Replaces CRLF and CR by LF, and ends the last line. A byte-order mark at the start remains for
/// `csv`, which skips it.
#[derive(Debug)]
struct LineFeeds<R> {
    input: R,
    /// The last byte that was read: a line feed after a carriage return does not end another line.
    last_byte: u8,
    is_at_start: bool,
    is_at_end: bool,
    /// Bytes that the reader of this has got.
    n_returned: u64,
}

impl<R: Read> LineFeeds<R> {
    fn new(input: R) -> Self {
        Self { input, last_byte: b'\n', is_at_start: true, is_at_end: false, n_returned: 0 }
    }

    /// Reads into `buffer`; returns 0 at the end. The first bytes are read together, as `csv`
    /// recognises a mark only in one piece.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_bytes = if self.is_at_start { START_BYTES.min(buffer.len()) } else { 1 };
        self.is_at_start = false;
        let mut n_read = 0;
        while n_read < n_bytes {
            match self.input.read(&mut buffer[n_read..])? {
                0 => break,
                n => n_read += n,
            }
        }
        Ok(n_read)
    }

    /// Replaces the ends of lines in `bytes`; returns the number of remaining bytes.
    fn replace(&mut self, bytes: &mut [u8]) -> usize {
        let first_is_known = self.last_byte != b'\r' || bytes.first() != Some(&b'\n');
        if first_is_known && !bytes.contains(&b'\r') {
            self.last_byte = bytes.last().copied().unwrap_or(self.last_byte);
            return bytes.len();
        }
        let mut kept = 0;
        for at in 0..bytes.len() {
            let byte = bytes[at];
            if byte != b'\n' || self.last_byte != b'\r' {
                bytes[kept] = if byte == b'\r' { b'\n' } else { byte };
                kept += 1;
            }
            self.last_byte = byte;
        }
        kept
    }
}

impl<R: Read> Read for LineFeeds<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_at_end && !buffer.is_empty() {
            let n_read = self.fill(buffer)?;
            if n_read == 0 {
                self.is_at_end = true;
                if !matches!(self.last_byte, b'\n' | b'\r') {
                    buffer[0] = b'\n';
                    self.n_returned += 1;
                    return Ok(1);
                }
            }
            let kept = self.replace(&mut buffer[..n_read]);
            // A buffer of the second byte of CRLF alone is not the end.
            if kept > 0 {
                self.n_returned += kept as u64;
                return Ok(kept);
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns one byte per call.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let n = 1.min(buffer.len());
            self.0.read(&mut buffer[..n])
        }
    }

    fn read(input: impl Read) -> Vec<(u64, Vec<String>)> {
        let mut records = Records::new(input, Some(b'#'));
        let mut all = Vec::new();
        while let Some((line, record)) = records.next_record().unwrap() {
            all.push((line, record.iter().map(str::to_owned).collect()));
        }
        all
    }

    #[test]
    fn records_have_the_number_of_their_first_line_for_every_line_ending() {
        let text = "\u{feff}a,b\n# c\n\n1,2\n\n\n\"x\ny\",3\n4,5";
        let lines = [(1, ["a", "b"]), (4, ["1", "2"]), (7, ["x\ny", "3"]), (9, ["4", "5"])];
        let expected = lines.map(|(line, fields)| (line, fields.map(str::to_owned).to_vec()));
        for end in ["\n", "\r\n", "\r"] {
            for last in ["", end] {
                let text = format!("{}{last}", text.replace('\n', end));
                assert_eq!(read(text.as_bytes()), expected, "{text:?}");
                assert_eq!(read(Slow(text.as_bytes())), expected, "{text:?}");
            }
        }
        assert!(read(&b""[..]).is_empty());
        for open in ["a\n\"1\n2", "a\n\"1\n2\n", "a\n\"1\n2\"\n"] {
            let lines: Vec<u64> = read(open.as_bytes()).into_iter().map(|(line, _)| line).collect();
            assert_eq!(lines, [1, 2], "{open:?}");
        }
    }

    proptest! {
        #[test]
        fn records_have_the_line_numbers_of_the_text(
            ends in prop::collection::vec(prop::sample::select(vec!["\n", "\r\n", "\r"]), 1..60),
            blank in prop::collection::vec(any::<bool>(), 60),
        ) {
            let mut text = String::new();
            let mut expected = Vec::new();
            for (line, (end, is_blank)) in (1..).zip(ends.iter().zip(blank)) {
                // A line feed after a carriage return would join it.
                let end = if text.ends_with('\r') && is_blank { "\r" } else { end };
                if !is_blank {
                    expected.push((line, vec![line.to_string()]));
                    text.push_str(&line.to_string());
                }
                text.push_str(end);
            }
            prop_assert_eq!(read(text.as_bytes()), expected);
        }
    }
}
