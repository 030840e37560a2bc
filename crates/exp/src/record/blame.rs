//! The tables of the causes of flows' times.

use std::borrow::Cow;
use std::path::Path;

use rampmeter_metrics::TableError;
use rampmeter_metrics::blame::{BlameRow, BlockerRow};
use rampmeter_metrics::columns::RowWriter;
use rampmeter_sim::{Blocker, Cause, FlowBlame, LossSignal, SimSpec, tier_names};

use crate::error::RunError;

/// Writers of `blame.parquet` and `blockers.parquet`.
pub(crate) struct BlameTables {
    tiers: Vec<String>,
    parts: RowWriter<BlameRow>,
    blockers: RowWriter<BlockerRow>,
    /// The first error; nothing is written after it.
    error: Option<TableError>,
}

/// Returns the names of a cause in the tables: the cause, its stage, and its tier.
fn names(cause: Cause, tiers: &[String]) -> [Cow<'static, str>; 3] {
    let tier = |tier: u8| Cow::from(tiers[usize::from(tier)].clone());
    let none = || Cow::from("");
    let (name, stage, tier) = match cause {
        Cause::Permission(stage) => ("permission", stage.name.into(), none()),
        Cause::PermissionInFlight(stage) => ("permission-in-flight", stage.name.into(), none()),
        Cause::SenderLink => ("sender-link", none(), none()),
        Cause::Serialisation => ("serialisation", none(), none()),
        Cause::Retransmission => ("retransmission", none(), none()),
        Cause::Loss(signal, at) => ("loss", signal_name(signal).into(), at.map_or(none(), tier)),
        Cause::Queueing(at) => ("queueing", none(), tier(at)),
        Cause::Paused(at) => ("paused", none(), tier(at)),
        Cause::CutThrough(at) => ("cut-through", none(), tier(at)),
        Cause::Ordering => ("ordering", none(), none()),
        Cause::Propagation => ("propagation", none(), none()),
        Cause::Switching => ("switching", none(), none()),
    };
    [name.into(), stage, tier]
}

fn signal_name(signal: LossSignal) -> &'static str {
    match signal {
        LossSignal::Timeout => "timeout",
        LossSignal::Packet => "packet",
        LossSignal::Open => "open",
    }
}

impl BlameTables {
    /// Creates the tables in the folder `out`.
    ///
    /// # Errors
    /// If a file cannot be made.
    pub(crate) fn create(sim: &SimSpec, out: &Path) -> Result<Self, RunError> {
        Ok(Self {
            tiers: tier_names(&sim.topology),
            parts: RowWriter::create(&out.join("blame.parquet"))?,
            blockers: RowWriter::create(&out.join("blockers.parquet"))?,
            error: None,
        })
    }

    /// Writes the causes of a flow.
    pub(crate) fn add(&mut self, blame: &FlowBlame) {
        if self.error.is_none()
            && let Err(error) = self.write(blame)
        {
            self.error = Some(error);
        }
    }

    fn write(&mut self, blame: &FlowBlame) -> Result<(), TableError> {
        let flow = u64::from(blame.number);
        for (part, &(cause, time)) in (0..).zip(&blame.parts) {
            let [cause, stage, tier] = names(cause, &self.tiers);
            let time_ps = time.as_ps();
            self.parts.push(&BlameRow { flow, part, cause, stage, tier, time_ps })?;
        }
        for &Blocker { part, flow: blocker, time } in &blame.blockers {
            let (blocker, time_ps) = (blocker.map(u64::from), time.as_ps());
            self.blockers.push(&BlockerRow { flow, part, blocker, time_ps })?;
        }
        Ok(())
    }

    /// Completes both tables.
    ///
    /// # Errors
    /// If they could not be written, now or earlier.
    pub(crate) fn finish(self, metadata: &[(String, String)]) -> Result<(), TableError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        self.parts.finish(metadata)?;
        self.blockers.finish(metadata)?;
        Ok(())
    }
}
