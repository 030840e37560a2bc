//! The phases of protocols with a schedule: each is written when the next one begins.

use std::io::{self, Write};

use rampmeter_types::{Phase, Time};

use super::tracks::Tracks;
use super::window::Window;
use super::writer::{Arrow, EventContent, Label, Track, Value};

/// The phase that a node is in, of one kind.
#[derive(Clone, Copy, Debug)]
struct CurrentPhase {
    kind: &'static str,
    phase: Option<Phase>,
    since: Time,
    track: Option<Track>,
}

/// The phases of all hosts and arbiters.
#[derive(Debug)]
pub(super) struct Phases {
    nodes: Vec<Vec<CurrentPhase>>,
    /// Phases that a node has just reported.
    reported: Vec<Phase>,
}

impl Phases {
    pub(super) fn new(n_stations: u32) -> Self {
        Self { nodes: vec![Vec::new(); n_stations as usize], reported: Vec::new() }
    }

    /// Handles the phases that a node reports. Those before the window are followed too: one may
    /// reach into it.
    pub(super) fn on_phases<W: Write>(
        &mut self,
        now: Time,
        node: u32,
        visit: impl FnOnce(&mut dyn FnMut(Phase)),
        window: &mut Window,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        let all = &mut self.nodes[node as usize];
        if now >= window.until && all.iter().all(|running| running.since >= window.until) {
            return Ok(());
        }
        self.reported.clear();
        visit(&mut |phase| self.reported.push(phase));
        for phase in &self.reported {
            if all.iter().all(|running| running.kind != phase.track) {
                all.push(CurrentPhase { kind: phase.track, phase: None, since: now, track: None });
            }
        }
        for (number, running) in all.iter_mut().enumerate() {
            let phase = self.reported.iter().find(|phase| phase.track == running.kind).copied();
            if phase != running.phase {
                end(node, number, running, now, window, tracks)?;
                (running.phase, running.since) = (phase, now);
            }
        }
        Ok(())
    }

    /// Handles the end of the run.
    pub(super) fn finish<W: Write>(
        &mut self,
        now: Time,
        window: &mut Window,
        tracks: &mut Tracks<W>,
    ) -> io::Result<()> {
        for (all, node) in self.nodes.iter_mut().zip(0..) {
            for (number, running) in all.iter_mut().enumerate() {
                end(node, number, running, now, window, tracks)?;
            }
        }
        Ok(())
    }
}

/// Writes a phase that ends now.
fn end<W: Write>(
    node: u32,
    number: usize,
    running: &mut CurrentPhase,
    now: Time,
    window: &mut Window,
    tracks: &mut Tracks<W>,
) -> io::Result<()> {
    let Some(phase) = running.phase else { return Ok(()) };
    if now == running.since || !window.overlaps(running.since, now) {
        return Ok(());
    }
    window.events += 1;
    let track = match running.track {
        Some(track) => track,
        None => *running.track.insert(tracks.phases(node, running.kind, number)?),
    };
    let name = format!("{} {}", phase.name, phase.number);
    let args = [("number", Value::Count(phase.number))];
    let content =
        EventContent { label: Label::Text(&name), packet: None, args: &args, arrow: Arrow::None };
    tracks.on_phase(track, running.since, now, &content)
}
