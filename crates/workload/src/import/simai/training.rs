//! A training step as rows, in the order of its policy.

use super::layer::{Groups, Layer, LayerPass, Policy};
use crate::import::schedule::{Collective, ROWS_MAX, Schedule};
use crate::trace::TraceError;

/// Rows that hosts receive, by host.
type RowsByHost = Vec<(usize, Vec<u64>)>;

/// A training step in the making.
pub(super) struct Run<'a> {
    file: &'a str,
    groups: &'a Groups,
    layers: &'a [Layer],
    pub(super) schedule: Schedule,
    /// Collectives for which hosts wait at the end.
    open: RowsByHost,
    /// Collectives of the file that the policy runs.
    pub(super) n_used: usize,
}

impl<'a> Run<'a> {
    pub(super) fn new(file: &'a str, groups: &'a Groups, layers: &'a [Layer]) -> Self {
        let schedule = Schedule::new(groups.gpus);
        Self { file, groups, layers, schedule, open: Vec::new(), n_used: 0 }
    }

    pub(super) fn convert(&mut self) -> Result<(), TraceError> {
        let (layers, policy) = (self.layers, self.groups.policy);
        if policy == Policy::Micro {
            let Some(first) = layers.first() else { return Ok(()) };
            self.schedule.place = first.place;
            self.collective(&first.weights)?;
            return Ok(());
        }
        let mut of_first = Vec::new();
        for (idx, layer) in layers.iter().enumerate() {
            self.compute(layer, layer.forward.ns)?;
            match (policy, layer.forward.collective) {
                (Policy::Data, _) => {}
                (Policy::Dlrm { .. }, Some((Collective::AllToAll, _))) => {
                    let received = self.collective(&layer.forward)?;
                    match idx {
                        0 => of_first = received,
                        _ => self.open.extend(received),
                    }
                }
                (Policy::Dlrm { .. }, _) if idx == self.groups.last_bottom => {
                    self.wait(std::mem::take(&mut of_first));
                }
                (Policy::Dlrm { .. }, _) => {}
                _ => {
                    let received = self.collective(&layer.forward)?;
                    self.wait(received);
                }
            }
        }
        self.open.append(&mut of_first);
        if policy != Policy::Inference {
            self.go_back()?;
        }
        let update: u64 = layers.iter().map(|layer| layer.update_ns).sum();
        let mut open: Vec<Vec<u64>> = vec![Vec::new(); self.groups.gpus];
        std::mem::take(&mut self.open).into_iter().for_each(|(gpu, rows)| open[gpu].extend(rows));
        for (gpu, rows) in open.into_iter().enumerate() {
            self.schedule.wait(gpu, rows);
            self.schedule.compute(gpu, update);
        }
        Ok(())
    }

    fn go_back(&mut self) -> Result<(), TraceError> {
        let (layers, policy) = (self.layers, self.groups.policy);
        let mut of_first = Vec::new();
        for (idx, layer) in layers.iter().enumerate().rev() {
            match policy {
                Policy::Data | Policy::Dlrm { .. } => {
                    self.compute(layer, layer.weights.ns)?;
                    let received = self.collective(&layer.weights)?;
                    self.open.extend(received);
                    match policy {
                        Policy::Dlrm { waits: true } if idx == 0 => {
                            self.wait(std::mem::take(&mut of_first));
                        }
                        _ => {}
                    }
                    if idx > 0 {
                        self.compute(layer, layer.input.ns)?;
                    }
                    if policy != Policy::Data && idx == self.groups.last_bottom + 1 {
                        of_first = self.collective(&layers[0].input)?;
                    }
                }
                Policy::Transformer => {
                    self.compute(layer, layer.input.ns)?;
                    let received = self.collective(&layer.input)?;
                    self.wait(received);
                    self.compute(layer, layer.weights.ns)?;
                    let received = self.collective(&layer.weights)?;
                    self.open.extend(received);
                }
                _ => {
                    self.compute(layer, layer.input.ns)?;
                    let received = if idx > 0 { self.collective(&layer.input)? } else { vec![] };
                    self.compute(layer, layer.weights.ns)?;
                    if policy != Policy::Model {
                        let received = self.collective(&layer.weights)?;
                        self.open.extend(received);
                    }
                    self.wait(received);
                }
            }
        }
        self.open.append(&mut of_first);
        Ok(())
    }

    fn compute(&mut self, layer: &Layer, ns: u64) -> Result<(), TraceError> {
        self.schedule.place = layer.place;
        (0..self.groups.gpus).for_each(|gpu| self.schedule.compute(gpu, ns));
        self.limit(0)
    }

    /// Runs the collective of a part in all groups; returns the rows that each GPU receives.
    fn collective(&mut self, part: &LayerPass) -> Result<RowsByHost, TraceError> {
        let Some((collective, kind)) = part.collective.filter(|_| part.bytes > 0) else {
            return Ok(Vec::new());
        };
        self.n_used += 1;
        let mut received = Vec::new();
        for group in self.groups.groups(kind) {
            // No algorithm has more than two messages a pair.
            self.limit(2 * group.len() * group.len())?;
            let bytes = self.groups.policy.vector(collective, group.len(), part.bytes);
            received.extend(self.schedule.collective(collective, &group, bytes));
        }
        Ok(received)
    }

    fn wait(&mut self, received: RowsByHost) {
        received.into_iter().for_each(|(gpu, rows)| self.schedule.wait(gpu, rows));
    }

    /// Refuses more rows than a machine can hold.
    fn limit(&self, n_more: usize) -> Result<(), TraceError> {
        if self.schedule.rows.len() + n_more <= ROWS_MAX {
            return Ok(());
        }
        Err(too_many(self.file, self.schedule.place))
    }
}

fn too_many(file: &str, line: u64) -> TraceError {
    let expected = format!("expected at most {ROWS_MAX} flows and computations");
    let reason = format!("{expected}, got more by line {line}");
    TraceError::Format { file: file.to_owned(), reason }
}
