//! The tables of `docs/results.md`, which are made from the definitions of results.
//!
//!     make generate
//!
//! renews them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rampmeter_exp::Summary;
use rampmeter_metrics::blame::{BlameRow, BlockerRow, ReleaseRow};
use rampmeter_metrics::paths::PathRow;
use rampmeter_metrics::series::{
    CounterSample, DropSample, HostRow, LatencyRow, LinkSample, OutageRow, QueueRow, RateSample,
    TenantSample, TierSample, WindowSample,
};
use rampmeter_metrics::{ColumnInfo, FlowRow, Row};
use schemars::SchemaGenerator;
use serde_json::Value;

const RENEW: &str = "make generate";
const BEGIN: &str = "<!-- results -->\n";
const END: &str = "<!-- /results -->\n";

#[test]
fn the_page_of_results_has_every_column_and_key() {
    let tables = [
        ("flows", FlowRow::ABOUT),
        ("series", TierSample::ABOUT),
        ("queues", QueueRow::ABOUT),
        ("latencies", LatencyRow::ABOUT),
        ("links", LinkSample::ABOUT),
        ("drops", DropSample::ABOUT),
        ("outages", OutageRow::ABOUT),
        ("hosts", HostRow::ABOUT),
        ("tenants", TenantSample::ABOUT),
        ("rates", RateSample::ABOUT),
        ("windows", WindowSample::ABOUT),
        ("transport", CounterSample::ABOUT),
        ("paths", PathRow::ABOUT),
        ("blame", BlameRow::ABOUT),
        ("blockers", BlockerRow::ABOUT),
        ("releases", ReleaseRow::ABOUT),
    ];
    let tables: String = tables.map(|(name, about)| table(name, about)).concat();
    let schema = SchemaGenerator::default().into_root_schema_for::<Summary>().to_value();
    let mut rows = String::new();
    describe(&schema, &schema, "", &mut rows, &mut BTreeSet::new());
    let keys = format!("## `summary.json`\n\n| key | meaning |\n|---|---|\n{rows}\n");
    compare(&format!("\n{tables}{keys}"));
}

fn table(name: &str, about: &[ColumnInfo]) -> String {
    let row = |a: &ColumnInfo| {
        let kind = if a.nullable { format!("{}, null", a.kind) } else { a.kind.to_owned() };
        format!("| `{}` | {kind} | {} | {} |\n", a.name, a.unit, one_line(a.meaning))
    };
    let rows: String = about.iter().map(row).collect();
    format!(
        "## `{name}.parquet`\n\n| column | type | unit | meaning |\n|---|---|---|---|\n{rows}\n"
    )
}

/// Adds a row for each key below `value`, whose path is `path`.
fn describe(
    root: &Value,
    value: &Value,
    path: &str,
    rows: &mut String,
    seen: &mut BTreeSet<String>,
) {
    let Some(properties) = value.get("properties").and_then(Value::as_object) else { return };
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let meaning = property.get("description").and_then(Value::as_str).unwrap_or_default();
        assert!(!meaning.is_empty(), "{path} has no description");
        *rows += &format!("| `{path}` | {} |\n", one_line(meaning));
        let (inner, suffix) = inner(root, property);
        // Statistics and bins are described at their first use.
        let title = inner.get("title").or(inner.get("description")).map(Value::to_string);
        if inner.get("properties").is_none() || seen.insert(title.unwrap_or_default()) {
            describe(root, &inner, &format!("{path}{suffix}"), rows, seen);
        }
    }
}

/// Returns the value type of a property and the rest of its path: `[]` for lists, `.*` for maps.
fn inner(root: &Value, property: &Value) -> (Value, &'static str) {
    let options = property.get("anyOf").and_then(Value::as_array).cloned().unwrap_or_default();
    let some = options.iter().find(|o| o.get("$ref").is_some()).unwrap_or(property);
    if let Some(items) = some.get("items") {
        return (inner(root, items).0, "[]");
    }
    if let Some(values) = some.get("additionalProperties").filter(|v| v.is_object()) {
        return (inner(root, values).0, ".*");
    }
    let Some(reference) = some.get("$ref").and_then(Value::as_str) else {
        return (some.clone(), "");
    };
    let name = reference.rsplit('/').next().unwrap_or_default();
    (root["$defs"][name].clone(), "")
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.replace(". `None`", ". Null")
        .replace("`None`", "null")
        .replace("None of", "Null of")
        .replace('|', "\\|")
}

/// Compares the text between the markers of the page, or writes it.
fn compare(expected: &str) {
    let file = "docs/results.md";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let (before, rest) = text.split_once(BEGIN).expect("the page has a beginning marker");
    let (found, after) = rest.split_once(END).expect("the page has an end marker");
    if std::env::var_os("RAMPMETER_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}"))
            .expect("a file to write");
    } else {
        assert_eq!(found, expected, "{file} is older than the results; renew it by\n    {RENEW}\n");
    }
}
