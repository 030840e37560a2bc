//! The JSON Schema of plans, by which editors complete and check them.

use std::borrow::Cow;

use rampmeter_proto::keys::{KeyInfo, KeyKind};
use rampmeter_types::quantity::Unit;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use super::Plan;
use crate::transport::{Registry, TransportInfo};

/// Numbers from here on mean "no limit".
const UNLIMITED: u64 = 1 << 63;

/// Returns the JSON Schema (draft 7, which editors support best) of plans whose transports are
/// those of `registry`: keys, types, choices, ranges, defaults, and descriptions.
///
/// Every plan that can be run is valid. A valid plan may still be rejected, for example if two of
/// its keys conflict.
pub fn plan_schema(registry: &Registry) -> Value {
    let settings = SchemaSettings::draft07().with_transform(TomlSchemaTransform);
    let mut schema = settings.into_generator().into_root_schema_for::<Plan<TransportTable>>();
    schema.insert("title".to_owned(), "A plan of Rampmeter".into());
    let transports = json!({
        "description": "The protocol and its parameters.",
        "oneOf": registry.about().iter().map(transport).collect::<Vec<_>>(),
    });
    let definitions = schema.ensure_object().entry("definitions").or_insert_with(|| json!({}));
    if let Value::Object(definitions) = definitions {
        definitions.insert(TransportTable::schema_name().into_owned(), transports);
        for (name, tag) in TAGS {
            let Some(forms) = definitions.remove(name) else { continue };
            let (table, forms) = by_tag(&forms, tag);
            definitions.insert(name.to_owned(), table);
            definitions.extend(forms);
        }
    }
    // Several transports may share the network.
    if let Some(own) = schema.pointer_mut("/properties/transport") {
        let table = json!({ "$ref": "#/definitions/Transport" });
        *own = json!({
            "description": "The protocol and its parameters, or those of several tenants.",
            "oneOf": [table, { "type": "array", "items": table, "minItems": 1, "maxItems": 8 }],
        });
    }
    let mut schema = schema.to_value();
    allow_units(&mut schema);
    let forms =
        schema.pointer_mut("/definitions/PortBytesSpec/anyOf").and_then(Value::as_array_mut);
    for (form, unit) in forms.into_iter().flatten().zip(Unit::from_key("bytes").into_iter().cycle())
    {
        allow_unit(form, unit);
    }
    schema
}

/// Allows texts with units (`"25Gbps"`) at keys whose ends name units, at every depth.
fn allow_units(schema: &mut Value) {
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
    for (key, property) in properties.into_iter().flatten() {
        if let Some(unit) = Unit::from_key(key) {
            allow_unit(property, unit);
        }
    }
    match schema {
        Value::Object(map) => map.values_mut().for_each(allow_units),
        Value::Array(items) => items.iter_mut().for_each(allow_units),
        _ => {}
    }
}

/// Allows texts with `unit` instead of numbers, also in lists and tables of numbers.
fn allow_unit(schema: &mut Value, unit: Unit) {
    let kind = schema["type"].as_str().unwrap_or_default();
    if let "integer" | "number" = kind {
        schema["type"] = json!([kind, "string"]);
        schema["pattern"] = unit.pattern().into();
    }
    for inner in ["items", "additionalProperties"] {
        if let Some(inner @ Value::Object(_)) = schema.get_mut(inner) {
            allow_unit(inner, unit);
        }
    }
}

/// Tables that have several forms, and the key that selects the form.
const TAGS: [(&str, &str); 3] =
    [("TopologySpec", "kind"), ("WorkloadSpec", "pattern"), ("Transport", "name")];

/// Returns the name of the definition of a form, such as `kind-star`.
fn definition(tag: &str, form: &str) -> String {
    format!("{tag}-{form}")
}

fn reference(tag: &str, form: &str) -> Value {
    json!({ "$ref": format!("#/definitions/{}", definition(tag, form)) })
}

/// Splits a table with several forms into one that chooses by `tag`, and a definition for each
/// form. Validators then report errors of the form that is meant, and not that no form fits. The
/// table names the keys of all forms, since editors complete by those alone.
fn by_tag(forms: &Value, tag: &str) -> (Value, Map<String, Value>) {
    let (mut names, mut choices) = (Vec::new(), Vec::new());
    let (mut keys, mut definitions) = (Map::new(), Map::new());
    for form in forms["oneOf"].as_array().into_iter().flatten() {
        let name = form["properties"][tag]["const"].as_str().unwrap_or_default();
        names.push(json!({ "const": name, "description": form["description"] }));
        choices.push(json!({
            "if": { "properties": { tag: { "const": name } }, "required": [tag] },
            "then": reference(tag, name),
        }));
        for (key, value) in form["properties"].as_object().into_iter().flatten() {
            keys.entry(key).or_insert_with(|| json!({ "description": value["description"] }));
        }
        definitions.insert(definition(tag, name), form.clone());
    }
    keys.insert(
        tag.to_owned(),
        json!({ "description": "Selects the form of this table.", "oneOf": names }),
    );
    let mut table = json!({
        "description": forms["description"],
        "type": "object",
        "properties": keys,
        "required": [tag],
        "allOf": choices,
    });
    without_nulls(&mut table);
    (table, definitions)
}

/// Placeholder of a `transport` table, whose schema depends on the registry.
struct TransportTable;

impl JsonSchema for TransportTable {
    fn schema_name() -> Cow<'static, str> {
        "Transport".into()
    }

    fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object" })
    }
}

/// Returns the table of one transport.
fn transport(about: &TransportInfo) -> Value {
    let presets: Vec<&str> = about.presets.iter().map(|(name, _)| *name).collect();
    let mut properties = Map::new();
    properties.insert("name".to_owned(), json!({ "const": about.name }));
    let preset = json!({
        "description": "Source of the values of omitted keys.",
        "enum": presets,
        "default": presets[0],
    });
    properties.insert("preset".to_owned(), preset);
    for info in &about.keys {
        let default = about.presets[0].1.get(&info.name);
        properties.insert(info.name.clone(), key(info, default));
    }
    if about.has_round_trips {
        for (name, of) in [("control-rtt-us", "a control packet"), ("data-rtt-us", "a full packet")]
        {
            let description = format!("Round trip of {of} that the transport assumes.");
            let (minimum, maximum) = (1e-3, 1e8);
            let key = json!({
                "description": description,
                "type": "number",
                "minimum": minimum,
                "maximum": maximum,
            });
            properties.insert(name.to_owned(), key);
        }
    }
    if about.wire.is_some() {
        let description =
            "Offset of the classes of its packets, if several transports share the network.";
        let key =
            json!({ "description": description, "type": "integer", "minimum": 0, "maximum": 7 });
        properties.insert("class".to_owned(), key);
    }
    if !about.best_effort.is_empty() {
        let lower: Vec<Value> =
            about.best_effort.iter().map(|name| reference("name", name)).collect();
        let description = "The transport of all tenants but the first, in lower classes.";
        let key = json!({ "description": description, "oneOf": lower });
        properties.insert("best-effort".to_owned(), key);
    }
    json!({
        "title": about.title,
        "description": about.summary,
        "type": "object",
        "properties": properties,
        "required": ["name"],
        "additionalProperties": false,
    })
}

/// Returns a key of a transport, with the value that the default preset gives it.
fn key(info: &KeyInfo, default: Option<&toml::Value>) -> Value {
    let limit = |max: u64| (max < UNLIMITED).then(|| json!(max));
    let mut schema = match &info.kind {
        KeyKind::Integer { min, max } => {
            json!({ "type": "integer", "minimum": min, "maximum": limit(*max) })
        }
        KeyKind::Number { min, max } => {
            let bound = |bound: f64| (bound.abs() < UNLIMITED as f64).then(|| json!(bound));
            json!({ "type": "number", "minimum": bound(*min), "maximum": bound(*max) })
        }
        KeyKind::Bool => json!({ "type": "boolean" }),
        KeyKind::Text => json!({ "type": "string" }),
        KeyKind::Table => json!({ "type": "object" }),
        KeyKind::List { length, min, max } => json!({
            "type": "array",
            "items": { "type": "integer", "minimum": min, "maximum": limit(*max) },
            "minItems": length,
            "maxItems": length,
        }),
        KeyKind::Choice { names } => {
            let names: Vec<Value> = names
                .iter()
                .map(|(name, doc)| json!({ "const": name, "description": doc }))
                .collect();
            json!({ "oneOf": names })
        }
    };
    schema["description"] = info.doc.clone().into();
    schema["default"] = default.and_then(|value| serde_json::to_value(value).ok()).into();
    without_nulls(&mut schema);
    schema
}

/// Removes the type `null`, which TOML does not have, and keywords that editors ignore.
#[derive(Clone)]
struct TomlSchemaTransform;

impl Transform for TomlSchemaTransform {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        schema.remove("format");
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [one] = types.as_slice() {
                *schema.ensure_object().entry("type").or_insert(Value::Null) = one.clone();
            }
        }
        if let Some(Value::Array(any)) = schema.get_mut("anyOf") {
            any.retain(|schema| schema["type"] != "null");
            if let [Value::Object(one)] = any.as_slice() {
                let one = one.clone();
                schema.remove("anyOf");
                // A draft-7 reference hides the keys next to it.
                if one.contains_key("$ref") && !schema.ensure_object().is_empty() {
                    schema.insert("allOf".to_owned(), json!([one]));
                } else {
                    schema.ensure_object().extend(one);
                }
            }
        }
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        if let Some(default) = schema.get_mut("default") {
            without_nulls(default);
            if default.is_null() {
                schema.remove("default");
            }
        }
    }
}

/// Removes keys without a value, at every depth.
fn without_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(without_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(without_nulls),
        _ => {}
    }
}
