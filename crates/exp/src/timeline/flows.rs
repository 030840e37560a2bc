//! Flows, from submission to their end, at their sender and at their receiver. A flow is written
//! when it has ended, also after the window.

use std::io::{self, Write};

use rampmeter_metrics::row::Status;
use rampmeter_sim::FlowRecord;
use rampmeter_types::Time;

use super::tracks::{FlowDirection, Tracks};
use super::window::Window;
use super::writer::{Arrow, EventContent, Label, Value};
use crate::traffic::ideals::Ideals;

/// Flows of a timeline.
#[derive(Debug)]
pub(super) struct Flows {
    ideals: Ideals,
    /// Flows that the end of the run cut off.
    unfinished: Vec<FlowRecord>,
}

impl Flows {
    pub(super) fn new(ideals: Ideals) -> Self {
        Self { ideals, unfinished: Vec::new() }
    }

    /// Handles the end of a flow.
    pub(super) fn on_flow<W: Write>(
        &mut self,
        record: &FlowRecord,
        window: &mut Window,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        let (end, status) = match (record.delivered, record.failed, record.rejected) {
            (Some(at), _, _) => (at, Status::Delivered),
            (None, Some(at), _) => (at, Status::Failed),
            (None, None, Some(at)) => (at, Status::Rejected),
            (None, None, None) => {
                self.unfinished.push(*record);
                return Ok(());
            }
        };
        self.write(record, end, status, window, tracks)
    }

    /// Handles the end of the run.
    pub(super) fn finish<W: Write>(
        &mut self,
        end: Time,
        window: &mut Window,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        for record in std::mem::take(&mut self.unfinished) {
            self.write(&record, end, Status::Unfinished, window, tracks)?;
        }
        Ok(())
    }

    fn write<W: Write>(
        &mut self,
        record: &FlowRecord,
        end: Time,
        status: Status,
        window: &mut Window,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        let &FlowRecord { id, arrival, src, dst, size, tenant, .. } = record;
        if !window.overlaps(arrival, end) {
            return Ok(());
        }
        let mut args = vec![
            ("flow", Value::Count(id.get().into())),
            ("src", Value::Count(src.get().into())),
            ("dst", Value::Count(dst.get().into())),
            ("size", Value::Count(size.get())),
            ("tenant", Value::Count(tenant.get().into())),
            ("status", Value::Word(status.name())),
        ];
        if record.number != id.get() {
            // Packets have the place of their flow in the order of submission.
            args.push(("number", Value::Count(record.number.into())));
        }
        if status == Status::Delivered {
            let ideal = self.ideals.flow(src, dst, size).delivered;
            let slowdown = (end - arrival).as_ps() as f64 / ideal.as_ps() as f64;
            args.push(("slowdown", Value::Ratio(slowdown)));
        }
        for (node, way, peer, to) in [
            (src.get(), FlowDirection::Egress, dst.get(), "to"),
            (dst.get(), FlowDirection::Ingress, src.get(), "from"),
        ] {
            if tracks.is_shown(node) {
                window.events += 1;
                let name = format!("flow {} {to} {}", id.get(), tracks.name(peer));
                let content = EventContent {
                    label: Label::Text(&name),
                    packet: None,
                    args: &args,
                    arrow: Arrow::None,
                };
                tracks.on_flow(node, way, arrival, end, &content)?;
            }
        }
        Ok(())
    }
}
