//! Algorithms of MSCCL.

use std::fmt::Write;

use proptest::prelude::*;

use super::*;

/// Returns an all-reduce around a ring of `n` GPUs, as msccl-tools write it.
pub(super) fn ring(n: u64) -> String {
    let mut text = format!(
        "<!-- a comment -->\n<algo name=\"ring\" proto=\"Simple\" nchannels=\"1\" \
         nchunksperloop=\"{n}\" ngpus=\"{n}\" coll=\"allreduce\" inplace=\"1\" outofplace=\"1\" \
         minBytes=\"0\" maxBytes=\"0\">\n"
    );
    for gpu in 0..n {
        let (next, before) = ((gpu + 1) % n, (gpu + n - 1) % n);
        writeln!(text, "  <gpu id=\"{gpu}\" i_chunks=\"{n}\" o_chunks=\"{n}\" s_chunks=\"0\">")
            .unwrap();
        writeln!(text, "    <tb id=\"0\" send=\"{next}\" recv=\"{before}\" chan=\"0\">").unwrap();
        let last = 2 * (n - 1);
        for step in 0..=last {
            let kind = match step {
                0 => "s",
                _ if step == last => "r",
                _ if step < n - 1 => "rrs",
                _ if step == n - 1 => "rrcs",
                _ => "rcs",
            };
            writeln!(
                text,
                "      <step s=\"{step}\" type=\"{kind}\" srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" \
                 dstoff=\"0\" cnt=\"1\" depid=\"-1\" deps=\"-1\" hasdep=\"0\"/>"
            )
            .unwrap();
        }
        text += "    </tb>\n  </gpu>\n";
    }
    text + "</algo>\n"
}

fn read_text(text: &str, vector: Option<u64>) -> Result<(Graph, Vec<String>), String> {
    let dir = TempDir::new().unwrap();
    write(&dir, "a.xml", text);
    let options = Options { vector_bytes: vector, ..Options::default() };
    without_idle(read(&dir, "a.xml", Format::Msccl, 8, &options))
}

#[test]
fn a_ring_is_that_of_the_pattern() {
    let (graph, notes) = read_text(&ring(4), Some(8 << 20)).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    assert_eq!(sent(&graph, 4), [6 * (2 << 20); 4]);
    // The longest chain has the 2 (n - 1) messages of a ring.
    let mut depth = vec![0; graph.len() as usize];
    for node in graph.topological_order() {
        let own = depth[node as usize] + u32::from(!graph.is_computation(node));
        for &to in graph.dependents(node) {
            depth[to as usize] = own.max(depth[to as usize]);
        }
        depth[node as usize] = own;
    }
    assert_eq!(depth.iter().max(), Some(&6));
}

#[test]
fn steps_wait_for_steps_of_other_blocks() {
    let text = "<algo proto=\"LL128\" nchunksperloop=\"4\" ngpus=\"2\" maxBytes=\"1000\">
  <gpu id=\"0\">
    <tb id=\"0\" send=\"1\" recv=\"-1\" chan=\"0\">
      <step s=\"0\" type=\"nop\" depid=\"5\" deps=\"1\"/>
      <step s=\"1\" type=\"s\" cnt=\"3\" depid=\"-1\" deps=\"-1\"/>
    </tb>
    <tb id=\"5\" send=\"-1\" recv=\"1\" chan=\"1\">
      <step s=\"0\" type=\"cpy\"/>
      <step s=\"1\" type=\"rrc\" cnt=\"1\"/>
    </tb>
  </gpu>
  <gpu id=\"1\">
    <tb id=\"0\" send=\"0\" recv=\"-1\" chan=\"1\"><step type=\"s\" cnt=\"1\"/></tb>
    <tb id=\"1\" send=\"-1\" recv=\"0\" chan=\"0\"><step type=\"r\" cnt=\"3\"/></tb>
  </gpu>
</algo>";
    let (graph, notes) = read_text(text, Some(4000)).unwrap();
    assert_eq!(
        notes,
        [
            "a.xml: vector-bytes 4000 are not among the 0 to 1000 of the algorithm",
            "a.xml: proto LL128 is not used: messages have no overhead of a protocol of NCCL",
            "a.xml: 1 local step (cpy, re) without any time",
        ]
    );
    let flows: Vec<(u32, u64)> =
        graph.flows().map(|(number, flow)| (number, flow.size.get())).collect();
    let [(first, 3000), (second, 1000)] = flows[..] else { panic!("{flows:?}") };
    let after = graph.dependencies();
    let before = |node: u32| -> u32 { *after[node as usize].last().unwrap() };
    // Send, its step, the step of the nop, the step that receives, the message.
    let mut node = first;
    for _ in 0..4 {
        node = before(node);
    }
    assert_eq!(node, second);
}

#[test]
fn wrong_algorithms_name_line_and_attribute() {
    let right = ring(3);
    let wrong =
        |from: &str, to: &str| read_text(&right.replacen(from, to, 1), Some(9)).unwrap_err();
    assert_eq!(
        read_text(&right, None).unwrap_err(),
        "a.xml:2: vector-bytes: expected vector-bytes with the file, which has no sizes, got \
         \"none\""
    );
    assert_eq!(
        wrong("type=\"rrs\"", "type=\"xyz\""),
        "a.xml:6: type: expected s, r, rrc, rcs, rrs, rrcs, cpy, re or nop, got \"xyz\""
    );
    assert_eq!(
        wrong("ngpus=\"3\"", "ngpus=\"x\""),
        "a.xml:2: ngpus: expected a whole number, got \"x\""
    );
    assert_eq!(
        wrong("ngpus=\"3\"", "ngpus=\"2\""),
        "a.xml:21: id: expected a GPU below 2, as ngpus requires, got \"2\""
    );
    assert_eq!(
        wrong("depid=\"-1\" deps=\"-1\"", "depid=\"0\" deps=\"99\""),
        "a.xml:5: deps: expected a step of a block of the GPU, got \"step 99 of block 0\""
    );
    assert_eq!(
        wrong("type=\"s\"", "type=\"nop\""),
        "a.xml:18: recv: expected a step of GPU 0 that sends here, got \"none\""
    );
    let unread = right.replacen("type=\"r\"", "type=\"nop\"", 1);
    assert_eq!(
        read_text(&unread, Some(9)).unwrap_err(),
        "a.xml:26: send: expected a step of GPU 0 that receives it on channel 0, got \"none\""
    );
    let error = read_text("<algo", Some(9)).unwrap_err();
    assert!(error.starts_with("a.xml: expected XML of MSCCL, got "), "{error}");
    let error = read_text("<gpu/>", Some(9)).unwrap_err();
    assert_eq!(error, "a.xml:1: element: expected algo, an algorithm of MSCCL, got \"gpu\"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_text_makes_the_reader_panic(at in 0usize..2000, byte in 32u8..127) {
        let mut text = ring(3).into_bytes();
        let at = at % text.len();
        text[at] = byte;
        let _ = read_text(&String::from_utf8(text).unwrap(), Some(90));
    }
}

#[test]
fn steps_without_chunks_and_gpus_that_are_missing_are_errors() {
    let error = |text: &str, vector| read_text(text, Some(vector)).unwrap_err();
    let got = error(&ring(3).replace("cnt=\"1\"", "cnt=\"0\""), 900);
    assert!(
        got.contains("cnt: expected at least 1 chunk of a step that sends or receives"),
        "{got}"
    );
    let got = error(&ring(3).replace("ngpus=\"3\"", "ngpus=\"4\""), 900);
    assert!(got.contains(":2: ngpus: expected 3, as many as follow, got \"4\""), "{got}");
    let got = error(&ring(3), 0);
    assert!(got.contains("vector-bytes: expected vector-bytes with the file"), "{got}");
}

#[test]
fn counts_of_both_ends_and_numbers_of_steps_must_agree() {
    let text = ring(4);
    assert!(read_text(&format!("\u{feff}{text}"), Some(1 << 20)).is_ok());
    let more = text.replacen("cnt=\"1\"", "cnt=\"2\"", 1);
    let error = read_text(&more, Some(1 << 20)).unwrap_err();
    assert!(error.contains("cnt: expected 2 chunks, as line 5 sends, got \"1\""), "{error}");
    let other = text.replacen("step s=\"1\"", "step s=\"3\"", 1);
    let error = read_text(&other, Some(1 << 20)).unwrap_err();
    assert!(error.contains("s: expected 1, the place of the step in its block"), "{error}");
}
