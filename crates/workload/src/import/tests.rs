//! Files of tools for machine learning, written here byte by byte.

mod chakra;
mod msccl;
mod simai;

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::graph::Graph;
use crate::trace::{FlowOrder, Format, Options, Trace, TraceRequirements, read_with_notes};

/// Reads the file `name` of a folder in a network of `n` hosts: its graph and notes, or the error.
/// Paths lack the folder.
fn read(
    dir: &TempDir,
    name: &str,
    format: Format,
    n: u32,
    options: &Options,
) -> Result<(Graph, Vec<String>), String> {
    let plain = |text: &str| text.replace(&format!("{}/", dir.path().display()), "");
    let check = TraceRequirements::new(n, FlowOrder::Require);
    match read_with_notes(&dir.path().join(name), format, check, options) {
        Ok((Trace::Graph(graph), notes)) => {
            Ok((graph, notes.iter().map(|note| plain(note)).collect()))
        }
        Ok((Trace::Flows(_), _)) => panic!("{name}: expected a graph"),
        Err(error) => Err(plain(&error.to_string())),
    }
}

/// Returns the result of [`read`] without the note of idle hosts.
fn without_idle(
    read: Result<(Graph, Vec<String>), String>,
) -> Result<(Graph, Vec<String>), String> {
    let (graph, mut notes) = read?;
    notes.retain(|note| !note.ends_with(": the others are idle"));
    Ok((graph, notes))
}

#[test]
fn files_with_fewer_ranks_than_hosts_have_a_note() {
    let dir = TempDir::new().unwrap();
    let goal = "rank 0 {\n l1: send 10b to 1\n}\nrank 1 {\n l1: recv 10b from 0\n}\n";
    fs::write(dir.path().join("a.goal"), goal).unwrap();
    fs::write(dir.path().join("b.goal"), format!("num_ranks 3\n{goal}")).unwrap();
    fs::write(dir.path().join("c.xml"), msccl::ring(4)).unwrap();
    let options = Options { vector_bytes: Some(4_000), ..Options::default() };
    for (name, format, n, ranks) in [
        ("a.goal", Format::Goal, 2, "2 ranks"),
        ("b.goal", Format::Goal, 3, "3 ranks"),
        ("c.xml", Format::Msccl, 4, "4 GPUs"),
    ] {
        let notes = |n: u32| read(&dir, name, format, n, &options).unwrap().1;
        let expected =
            format!("{name}: {ranks} in a network of {} hosts: the others are idle", n + 1);
        assert_eq!(notes(n), [""; 0], "{name}");
        assert_eq!(notes(n + 1), [expected], "{name}");
    }
}

/// Returns the bytes that each host sends.
fn sent(graph: &Graph, n: usize) -> Vec<u64> {
    let mut sent = vec![0; n];
    graph.flows().for_each(|(_, flow)| sent[flow.src.idx()] += flow.size.get());
    sent
}

#[test]
fn formats_are_distinguished_by_contents() {
    let dir = TempDir::new().unwrap();
    let of = |bytes: &[u8]| {
        let file = dir.path().join("file");
        fs::write(&file, bytes).unwrap();
        Format::from_contents(&file)
    };
    let trace = chakra::file(&[chakra::Fields::node(1, 4)]);
    for (bytes, format) in [
        (&b"Nodes 4\nConnections 1\n1->0 start 0 size 5\n"[..], Some(Format::Htsim)),
        (b"# a comment\n1->0 start 0 size 5\n", Some(Format::Htsim)),
        (b"num_ranks 2\n", Some(Format::Goal)),
        (b"MICRO\n1\nconv1 -1 5 NONE 0 5 NONE 0 5 ALLTOALL 1048576 5\n", Some(Format::Simai)),
        (b"<!-- Copyright -->\n<algo name=\"a\">", Some(Format::Msccl)),
        (b"arrival_ns,src,dst,size_bytes\n", Some(Format::Csv)),
        (&trace, Some(Format::Chakra)),
        (b"2\n2 1 3 100 5 2\n", Some(Format::Hpcc)),
        (b"", None),
        (b"\x00\x00\x00", None),
        (b"\x80\x80\x80\x80", None),
    ] {
        assert_eq!(of(bytes), format, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_file_of_another_format_is_named_by_that_format() {
    let dir = TempDir::new().unwrap();
    let error = |bytes: &[u8], format: Format| {
        fs::write(dir.path().join("f"), bytes).unwrap();
        read(&dir, "f", format, 8, &Options::default()).unwrap_err()
    };
    let trace = chakra::file(&[chakra::Fields::node(1, 4)]);
    assert_eq!(
        error(b"MICRO\n1\n", Format::Goal),
        "f:1: line: expected num_ranks or a rank, got \"MICRO\"; the \
         file looks like format \"simai\""
    );
    let binary = error(&trace, Format::Htsim);
    assert!(binary.starts_with("f: expected text, got a binary file that begins with"), "{binary}");
    assert!(binary.ends_with("; the file looks like format \"chakra\""), "{binary}");
    assert_eq!(
        error(b"\x89HDF\r\n\x1a\n\xff", Format::Goal),
        "f: expected text, got a binary file, of HDF5"
    );
    let error = error(b"\x89HDF\r\n\x1a\n\xff", Format::Chakra);
    assert!(error.starts_with("f: metadata: expected a message of"), "{error}");
}

fn write(dir: &TempDir, name: &str, bytes: impl AsRef<[u8]>) {
    let path: &Path = &dir.path().join(name);
    fs::write(path, bytes).unwrap();
}
