//! Files generated from the transports' packets: the table of the Wireshark dissector, and the
//! tables of `docs/protocols`.
//!
//!     make generate
//!
//! renews them.

use std::fs;
use std::path::Path;

use rampmeter_proto::{Builtin, formats};
use rampmeter_types::wire::{
    Bound, FieldEncoding, FieldInfo, FieldLimit, Format, NumberBase, Rule, WireFormat,
};

const RENEW: &str = "make generate";
/// Columns of a line of Lua.
const COLUMNS: usize = 100;

#[test]
fn the_dissector_has_every_packet() {
    let transports: String = formats::<Builtin>().iter().map(lua_transport).collect();
    let table = format!("local TRANSPORTS = {{\n{transports}}}\n");
    compare("wireshark/rampmeter.lua", "-- <transports>\n", "-- </transports>\n", &table);
}

#[test]
fn the_pages_have_every_packet() {
    for wire in formats::<Builtin>() {
        let page = format!("docs/protocols/{}.md", wire.name);
        let rows: String = wire.formats.iter().map(row).collect();
        let head = "| type | name | direction | fields (bytes) | length | meaning |\n";
        let table = format!("\n{head}|---|---|---|---|---|---|\n{rows}\n");
        compare(&page, "<!-- packets -->\n", "<!-- /packets -->\n", &table);
    }
}

/// Compares the text between two markers of a file, or writes it.
fn compare(file: &str, from: &str, to: &str, expected_text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{file}: {e}"));
    let parts = text.split_once(from).and_then(|(before, rest)| {
        rest.split_once(to).map(|(found, after)| (before, found, after))
    });
    let (before, found, after) =
        parts.unwrap_or_else(|| panic!("{file} has no {} and {}", from.trim(), to.trim()));
    if std::env::var_os("RAMPMETER_BLESS").is_some() {
        fs::write(&path, format!("{before}{from}{expected_text}{to}{after}"))
            .expect("a file to write");
    } else {
        assert_eq!(
            found, expected_text,
            "{file} is older than the packets; renew it by\n    {RENEW}\n"
        );
    }
}

fn lua_transport(wire: &WireFormat) -> String {
    let packets: String = wire.formats.iter().map(|format| lua_packet(wire, format)).collect();
    let (WireFormat { id, title, .. }, name) = (wire, wire.filter());
    format!("  [{}] = {{\n    name = \"{name}\",\n    title = \"{title}\",\n{packets}  }},\n", id.0)
}

fn lua_packet(wire: &WireFormat, format: &Format) -> String {
    let mut parts = vec![format!("{:?}", format.name), format!("{:?}", format.summary)];
    parts.extend(format.fields.iter().map(|field| lua_field(wire, format, field)));
    format!("    [{}] = {{\n{}    }},\n", format.code, filled(&parts))
}

/// Returns the parts, each with a comma, in lines as long as may be.
fn filled(parts: &[String]) -> String {
    let (mut text, mut line) = (String::new(), String::new());
    for part in parts {
        if !line.is_empty() && 6 + line.len() + part.len() + 2 > COLUMNS {
            text += &format!("      {}\n", line.trim_end());
            line.clear();
        }
        line += &format!("{part}, ");
    }
    text + &format!("      {}\n", line.trim_end())
}

fn lua_field(wire: &WireFormat, format: &Format, field: &FieldInfo) -> String {
    let label = wire.label(field).unwrap_or_else(|| panic!("{} has no label", field.name));
    let name = field.filter;
    match field.form {
        FieldEncoding::Number { bytes, base: NumberBase::Hex } => {
            format!("hex({bytes}, {name:?}, {label:?})")
        }
        FieldEncoding::Number { bytes, base: NumberBase::Decimal } => {
            let rule = format.rules.iter().find(|rule| rule.field == field.name);
            let rule = rule.map_or(String::new(), |rule| format!(", {}", lua_rule(format, rule)));
            format!("u{}({name:?}, {label:?}{rule})", 8 * u32::from(bytes))
        }
        FieldEncoding::Words { expected, words } => {
            let words: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
            format!("word({name:?}, {label:?}, {expected:?}, {{ [0] = {} }})", words.join(", "))
        }
        FieldEncoding::List { max, items } => {
            let items: Vec<String> =
                items.iter().map(|item| lua_field(wire, format, item)).collect();
            format!("list({name:?}, {label:?}, {max}, {{ {} }})", items.join(", "))
        }
    }
}

fn lua_rule(format: &Format, rule: &Rule) -> String {
    let bound = match rule.bound {
        Bound::Min => "at_least",
        Bound::Max => "at_most",
    };
    match rule.limit {
        FieldLimit::Number(number) => format!("{bound}({number})"),
        FieldLimit::Field(name) => {
            let filter = format.field(name).map_or(name, |field| field.filter);
            format!("{bound}({filter:?})")
        }
    }
}

fn row(format: &Format) -> String {
    let fields: Vec<String> = format.fields.iter().map(cell).collect();
    let lists = format.fields.iter().filter_map(|field| match field.form {
        FieldEncoding::List { max, items } => {
            Some(format!(" + {} n, n up to {max}", FieldInfo::bytes(items)))
        }
        _ => None,
    });
    let (length, lists) = (format.bytes(), lists.collect::<String>());
    let doc_text = format.docs.trim().split("\n\n").next().unwrap_or_default();
    let doc_text: Vec<&str> =
        doc_text.split('\n').map(str::trim).take_while(|l| !l.is_empty()).collect();
    let Format { code, name, direction, .. } = format;
    let (fields, doc_text) = (fields.join(", "), doc_text.join(" "));
    format!("| {code} | {name} | {direction} | {fields} | {length}{lists} | {doc_text} |\n")
}

fn cell(field: &FieldInfo) -> String {
    let name = field.name.replace('_', " ");
    match field.form {
        FieldEncoding::List { items, .. } => {
            let parts: Vec<String> = items.iter().map(cell).collect();
            format!("{name}: n 1, n x ({})", parts.join(", "))
        }
        form => format!("{name} {}", form.bytes()),
    }
}
