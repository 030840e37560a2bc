//! The paths of flows: which ways the data packets of each flow took.

use std::path::Path;

use rampmeter_metrics::TableError;
use rampmeter_metrics::columns::RowWriter;
use rampmeter_metrics::paths::PathRow;
use rampmeter_sim::fabric::{PortChange, PortEvent};
use rampmeter_sim::{FlowRecord, Topology};
use rampmeter_types::Header;
use rampmeter_types::collections::IdMap;

use crate::topology::names::{Names, NamesSpec};

/// No path yet.
const NONE: u32 = u32::MAX;

/// Counts the packets of each flow by path. Paths are a tree: one is another with a port after it.
#[derive(Debug)]
pub(crate) struct PathTable {
    names: Names,
    /// Each path: the one before the last port, and that port.
    paths: Vec<(u32, u32)>,
    numbers: IdMap<(u32, u32), u32>,
    /// The path so far of each packet in flight, by handle.
    path_so_far: Vec<u32>,
    rows: Vec<PathCount>,
    row_of: IdMap<(u32, u32), u32>,
    /// The numbers of flows that are not submitted in the order of their numbers.
    flows: IdMap<u32, u32>,
}

#[derive(Clone, Copy, Debug)]
struct PathCount {
    flow: u32,
    path: u32,
    packets: u64,
    bytes: u64,
}

impl PathTable {
    /// Creates a table without packets for the network of `topology`.
    pub(crate) fn new(topology: &Topology, own: &NamesSpec) -> Self {
        Self {
            names: Names::new(topology, own),
            paths: Vec::new(),
            numbers: IdMap::default(),
            path_so_far: Vec::new(),
            rows: Vec::new(),
            row_of: IdMap::default(),
            flows: IdMap::default(),
        }
    }

    /// Handles the end of a flow. Packets have its place in the order of submission; the table has
    /// its number.
    pub(crate) fn on_flow(&mut self, record: &FlowRecord) {
        if record.number != record.id.get() {
            self.flows.insert(record.id.get(), record.number);
        }
    }

    /// Handles an event of a port.
    pub(crate) fn on_port<H: Header>(&mut self, event: &PortEvent<H>) {
        match event.change {
            PortChange::TransmitStart { handle, ref packet, .. } if packet.payload.len > 0 => {
                let before = self.path(handle);
                *self.path_mut(handle) = self.step(before, event.port);
            }
            PortChange::Duplicate { handle, twin } => *self.path_mut(twin) = self.path(handle),
            PortChange::Drop { handle, .. } | PortChange::Consume { handle } => {
                *self.path_mut(handle) = NONE
            }
            PortChange::Arrival { handle, ref packet } => {
                let path = std::mem::replace(self.path_mut(handle), NONE);
                if packet.payload.len > 0 {
                    self.count(packet.payload.msg.get(), path, packet.payload.len);
                }
            }
            _ => {}
        }
    }

    fn path(&self, handle: u32) -> u32 {
        self.path_so_far.get(handle as usize).copied().unwrap_or(NONE)
    }

    fn path_mut(&mut self, handle: u32) -> &mut u32 {
        let idx = handle as usize;
        if self.path_so_far.len() <= idx {
            self.path_so_far.resize(idx + 1, NONE);
        }
        &mut self.path_so_far[idx]
    }

    /// Returns the path that continues by a port.
    fn step(&mut self, before: u32, port: u32) -> u32 {
        let next = self.paths.len() as u32;
        let number = *self.numbers.entry((before, port)).or_insert(next);
        if number == next {
            self.paths.push((before, port));
        }
        number
    }

    fn count(&mut self, flow: u32, path: u32, bytes: u16) {
        let next = self.rows.len() as u32;
        let row = *self.row_of.entry((flow, path)).or_insert(next);
        if row == next {
            self.rows.push(PathCount { flow, path, packets: 0, bytes: 0 });
        }
        let row = &mut self.rows[row as usize];
        row.packets += 1;
        row.bytes += u64::from(bytes);
    }

    /// Returns the name of a path: its nodes from host to host.
    fn name(&self, path: u32) -> String {
        let (mut ports, mut at) = (Vec::new(), path);
        while at != NONE {
            let (before, port) = self.paths[at as usize];
            ports.push(port);
            at = before;
        }
        let Some(&first) = ports.last() else { return String::new() };
        let mut name = self.names.nodes[self.names.ports[first as usize].node as usize].clone();
        for &port in ports.iter().rev() {
            name.push('>');
            name.push_str(&self.names.ports[port as usize].to);
        }
        name
    }

    /// Writes the table `file`, by flow and path.
    ///
    /// # Errors
    /// If the table cannot be written.
    pub(crate) fn write(
        mut self,
        file: &Path,
        metadata: &[(String, String)],
    ) -> Result<(), TableError> {
        for row in &mut self.rows {
            row.flow = self.flows.get(&row.flow).copied().unwrap_or(row.flow);
        }
        let names: Vec<String> = (0..self.paths.len() as u32).map(|p| self.name(p)).collect();
        let mut rows = self.rows;
        rows.sort_unstable_by_key(|row| (row.flow, names[row.path as usize].as_str()));
        let mut writer = RowWriter::create(file)?;
        for PathCount { flow, path, packets, bytes } in rows {
            let path = names[path as usize].clone().into();
            writer.push(&PathRow { flow: flow.into(), path, packets, bytes })?;
        }
        writer.finish(metadata)?;
        Ok(())
    }
}
