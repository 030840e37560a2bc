//! The part of Chakra's published schema that traces need, with its names and numbers
//! (mlcommons/chakra, schema/protobuf/et_def.proto).

use prost::{Message, Oneof};

use super::collective::Collective;

/// Collectives in the order of `CollectiveCommType`.
pub(super) const COLLECTIVES: [Collective; 10] = [
    Collective::AllReduce,
    Collective::Reduce,
    Collective::AllGather,
    Collective::Gather,
    Collective::Scatter,
    Collective::Broadcast,
    Collective::AllToAll,
    Collective::ReduceScatter,
    Collective::ReduceScatter,
    Collective::Barrier,
];

#[derive(Clone, PartialEq, Message)]
pub(super) struct GlobalMetadata {
    #[prost(bytes = "vec", tag = "1")]
    pub(super) version: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, optional, tag = "8")]
    pub(super) inputs: Option<IoInfo>,
    #[prost(message, repeated, tag = "10")]
    pub(super) attr: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct IoInfo {
    #[prost(string, tag = "1")]
    pub(super) values: String,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub(super) value: Option<Value>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(double, tag = "3")]
    Double(f64),
    #[prost(float, tag = "5")]
    Float(f32),
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(BoolList),
    #[prost(string, tag = "29")]
    Text(String),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct BoolList {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

/// Kinds of nodes that a workload distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Metadata,
    Memory,
    Compute,
    Send,
    Receive,
    Collective,
}

impl Node {
    /// Returns the kind by `NodeType`; `None` for an invalid node and for types of later schemas.
    pub(super) fn kind(&self) -> Option<NodeKind> {
        Some(match self.kind {
            1 | 9 => NodeKind::Metadata,
            2 | 3 | 8 | 10 => NodeKind::Memory,
            4 => NodeKind::Compute,
            5 => NodeKind::Send,
            6 => NodeKind::Receive,
            7 => NodeKind::Collective,
            _ => return None,
        })
    }

    fn value(&self, name: &str) -> Option<&Value> {
        self.attr.iter().find(|attr| attr.name == name)?.value.as_ref()
    }

    /// Returns a number among the attributes.
    pub(super) fn number(&self, name: &str) -> Option<i128> {
        Some(match *self.value(name)? {
            Value::Double(value) => value as i128,
            Value::Float(value) => value as i128,
            Value::Int32(value) | Value::Sint32(value) | Value::Sfixed32(value) => value.into(),
            Value::Int64(value) | Value::Sint64(value) | Value::Sfixed64(value) => value.into(),
            Value::Uint32(value) | Value::Fixed32(value) => value.into(),
            Value::Uint64(value) | Value::Fixed64(value) => value.into(),
            Value::Bool(value) => value.into(),
            Value::Text(ref text) => text.parse().ok()?,
            Value::Bools(_) => return None,
        })
    }

    /// Returns a text among the attributes, or a number as one.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::Text(text) => Some(text.clone()),
            _ => self.number(name).map(|number| number.to_string()),
        }
    }

    /// Returns true if a list of truth values among the attributes has a false one.
    pub(super) fn has_false(&self, name: &str) -> bool {
        matches!(self.value(name), Some(Value::Bools(list)) if list.values.contains(&false))
    }

    /// Returns the groups that a `process_group:init` node of PyTorch lists in its inputs.
    pub(super) fn process_groups(&self) -> Vec<(String, Vec<usize>)> {
        let text = self.inputs.as_ref().map(|inputs| inputs.values.as_str()).unwrap_or_default();
        let (Some(from), Some(to)) = (text.find("[{"), text.rfind("}]")) else { return Vec::new() };
        let text = text[from..to + 2].replace("\\\"", "\"");
        let Ok(serde_json::Value::Array(list)) = serde_json::from_str(&text) else {
            return Vec::new();
        };
        let group = |group: &serde_json::Value| {
            let name = group.get("pg_name")?.as_str()?.to_owned();
            let ranks = group.get("ranks")?.as_array()?;
            let ranks: Option<Vec<usize>> =
                ranks.iter().map(|rank| rank.as_u64().map(|rank| rank as usize)).collect();
            Some((name, ranks?)).filter(|(_, ranks)| !ranks.is_empty())
        };
        list.iter().filter_map(group).collect()
    }
}

/// Returns the next message and the rest of the file.
fn split(bytes: &[u8]) -> Result<(&[u8], &[u8]), String> {
    let mut rest = bytes;
    if bytes.is_empty() {
        return Err("expected a message, got the end of the file".to_owned());
    }
    // A message of 123 bytes begins with a brace too, and is not followed by a key.
    let is_json = bytes[0] == b'{' && bytes[1..].trim_ascii_start().starts_with(b"\"");
    if is_json && std::str::from_utf8(bytes).is_ok() {
        return Err("expected messages of Protobuf, got JSON: Chakra's tools convert it".to_owned());
    }
    let length = prost::decode_length_delimiter(&mut rest)
        .map_err(|_| "expected the length of a message, got other bytes".to_owned())?;
    if length > rest.len() {
        let left = rest.len();
        return Err(format!(
            "expected a message of {length} bytes, got the last {left} of the file"
        ));
    }
    Ok(rest.split_at(length))
}

/// Returns true for a file whose first messages are those of a trace.
pub(super) fn is_trace(bytes: &[u8]) -> bool {
    let Ok((first, rest)) = split(bytes) else { return false };
    // Metadata begins with field 1 or 2, which have lengths.
    let is_metadata = matches!(first.first(), None | Some(0x0a | 0x12));
    let Ok((second, _)) = split(rest) else { return false };
    let is_node = Node::decode(second).is_ok_and(|node| node.kind().is_some());
    is_metadata && GlobalMetadata::decode(first).is_ok() && !second.is_empty() && is_node
}

/// Returns the nodes of a file.
pub(super) fn nodes(bytes: &[u8]) -> Result<Vec<Node>, String> {
    let (first, mut rest) = split(bytes).map_err(|error| format!("metadata: {error}"))?;
    GlobalMetadata::decode(first)
        .map_err(|error| format!("metadata: expected GlobalMetadata of Chakra, got {error}"))?;
    let mut nodes = Vec::new();
    while !rest.is_empty() {
        let at = nodes.len() + 1;
        let (message, left) = split(rest).map_err(|error| format!("message {at}: {error}"))?;
        let node = Node::decode(message)
            .map_err(|error| format!("message {at}: expected a Node of Chakra, got {error}"))?;
        nodes.push(node);
        rest = left;
    }
    Ok(nodes)
}
