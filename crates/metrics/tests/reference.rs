//! Compares the ideal `acked` with every ideal in the recorded runs of the published simulators.
//!
//! The recordings are not part of the repository. The environment variable `RAMPMETER_REFERENCE`
//! names their directory; without it the test prints so and passes.

use std::fs::File;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use rampmeter_metrics::{Forwarding, Ideal, IdealModel, PathHop};
use rampmeter_types::{Bytes, Padding, Rate, Segmentation, Span};

const HOSTS_PER_RACK: u32 = 16;

/// Recordings by the start of their names, with access rate and delay of every link.
const RECORDINGS: [(&str, u64, u64); 4] = [
    ("dcpim_100g", 100, 650),
    ("phost_10g", 10, 200),
    ("pfabric_10g", 10, 200),
    ("fastpass_10g", 10, 200),
];

fn path(src: u32, dst: u32, access_gbps: u64, delay_ns: u64) -> Vec<PathHop> {
    let delay = Span::from_ns(delay_ns);
    let access = PathHop { rate: Rate::from_gbps(access_gbps), delay };
    let core = PathHop { rate: Rate::from_gbps(4 * access_gbps), delay };
    if src / HOSTS_PER_RACK == dst / HOSTS_PER_RACK {
        vec![access; 2]
    } else {
        vec![access, core, core, access]
    }
}

fn check(file: &Path, access_gbps: u64, delay_ns: u64) -> u64 {
    let segmentation = Segmentation::new(Bytes::new(1_460), Bytes::new(40), Padding::Full);
    let model = IdealModel { forwarding: Forwarding::StoreAndForward, segmentation };
    let mut reader = csv::Reader::from_reader(MultiGzDecoder::new(File::open(file).unwrap()));
    let header = reader.headers().unwrap().clone();
    let column = |name: &str| header.iter().position(|column| column == name).unwrap();
    let (src, dst) = (column("src"), column("dst"));
    let (size, ideal) = (column("size_bytes"), column("ideal_ps"));
    let mut n = 0;
    for record in reader.records() {
        let record = record.unwrap();
        let number = |at: usize| record[at].parse::<u64>().unwrap();
        let path = path(number(src) as u32, number(dst) as u32, access_gbps, delay_ns);
        let ours = model.fct(Ideal::Acked, Bytes::new(number(size)), &path).as_ps();
        // They print microseconds with four decimals.
        let printed = (ours + 50) / 100 * 100;
        assert_eq!(printed, number(ideal), "{}: {record:?}", file.display());
        n += 1;
    }
    n
}

#[test]
fn every_recorded_ideal_is_the_ideal_acked() {
    let Some(dir) = std::env::var_os("RAMPMETER_REFERENCE") else {
        skip("skipped: RAMPMETER_REFERENCE does not name a directory of recordings");
        return;
    };
    let mut files: Vec<_> =
        std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut checked = 0;
    for file in files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let recording = RECORDINGS.iter().find(|(start, ..)| name.starts_with(start));
        if let Some(&(_, access_gbps, delay_ns)) = recording {
            checked += check(&file, access_gbps, delay_ns);
        }
    }
    assert!(checked > 0, "no recordings in {}", dir.display());
}

#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(message: &str) {
    eprintln!("{message}");
}
