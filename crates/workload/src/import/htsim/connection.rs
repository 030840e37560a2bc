//! Lines of connections.

use std::collections::BTreeSet;

use super::super::Line;
use super::{Connection, End, Matrix};
use crate::trace::{TraceError, parse_ps};

/// A connection whose line has been read in part.
struct PartialConnection {
    connection: Connection,
    size: Option<u64>,
    id: Option<u64>,
    is_message: bool,
}

impl Matrix {
    /// Reads a connection from the words of its line.
    pub(super) fn connection(
        &mut self,
        line: Line<'_>,
        pair: &str,
        rest: &[&str],
    ) -> Result<Connection, TraceError> {
        let (src, dst) = pair.split_once("->").unwrap_or((pair, ""));
        let connection = Connection {
            place: line.number,
            src: self.node(line, "src", src)?,
            dst: self.node(line, "dst", dst)?,
            ..Connection::default()
        };
        let mut draft = PartialConnection { connection, size: None, id: None, is_message: false };
        let mut seen = BTreeSet::new();
        let mut words = rest.iter().copied().peekable();
        while let Some(word) = words.next() {
            if word == "addon" {
                self.n_addons += 1;
                continue;
            }
            if word == "msg" {
                self.n_messages += 1;
                draft.is_message = true;
                // The number of the message may be omitted.
                words.next_if(|next| next.parse::<u64>().is_ok());
                continue;
            }
            let Some(value) = words.next() else {
                return Err(line.wrong("connection", "a value after every key", word));
            };
            if !word.ends_with("_done_trigger") && !seen.insert(word) {
                return Err(line.wrong("connection", "each key once", &format!("{word} twice")));
            }
            self.read_key(line, word, value, &mut draft)?;
        }
        self.complete(line, draft)
    }

    /// Reads a key of a connection and its value.
    fn read_key(
        &mut self,
        line: Line<'_>,
        word: &str,
        value: &str,
        draft: &mut PartialConnection,
    ) -> Result<(), TraceError> {
        match word {
            "start" => {
                let ps = parse_ps(value, 1);
                draft.connection.start_ps =
                    Some(ps.ok_or_else(|| line.wrong("start", "picoseconds", value))?);
                self.has_fractions |= value.contains('.') && value.parse() != Ok(0.0);
            }
            "size" => draft.size = Some(line.number("size", value)?),
            "id" => draft.id = Some(line.number("id", value)?),
            "prio" => {
                line.number("prio", value)?;
                self.n_priorities += 1;
            }
            "trigger" => draft.connection.trigger = Some(line.number("trigger", value)?),
            "send_done_trigger" => {
                let id = line.number("send_done_trigger", value)?;
                draft.connection.activates.push((End::Sent, id));
            }
            "recv_done_trigger" => {
                let id = line.number("recv_done_trigger", value)?;
                draft.connection.activates.push((End::Received, id));
            }
            _ => {
                let expected = "start, size, id, msg, prio, trigger, send_done_trigger or \
                                recv_done_trigger";
                return Err(line.wrong("connection", expected, word));
            }
        }
        Ok(())
    }

    /// Checks a connection of which all keys have been read.
    fn complete(
        &mut self,
        line: Line<'_>,
        draft: PartialConnection,
    ) -> Result<Connection, TraceError> {
        let PartialConnection { mut connection, size, id, is_message } = draft;
        connection.size = match size {
            None | Some(0) => {
                let expected = "at least 1 byte: a flow of size 0 or of no size is endless in \
                                htsim, and flows of a trace end";
                let got = if size.is_none() { "none" } else { "0" };
                return Err(line.wrong("size", expected, got));
            }
            Some(size) => size,
        };
        // Messages of one connection share its id.
        if let Some(id) = id.filter(|_| !is_message)
            && let Some(first) = self.ids.insert(id, line.number)
        {
            let (expected, file) = ("a number that no connection before has", line.file);
            return Err(line.wrong("id", expected, &format!("{id}, as {file}:{first} has")));
        }
        match (connection.start_ps, connection.trigger) {
            (None, None) => Err(line.wrong("start", "a start time or a trigger", "none")),
            (Some(_), Some(_)) => Err(line.wrong("start", "a start time or a trigger", "both")),
            _ => Ok(connection),
        }
    }

    fn node(&self, line: Line<'_>, field: &'static str, text: &str) -> Result<u64, TraceError> {
        let node = line.number(field, text)?;
        match self.n_nodes {
            Some(n) if node >= n => {
                Err(line.wrong(field, &format!("a node below {n}, as Nodes requires"), text))
            }
            _ => Ok(node),
        }
    }
}
