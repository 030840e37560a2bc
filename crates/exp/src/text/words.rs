//! Values of a fabric in the words of errors: as plans spell them.

use rampmeter_types::Bytes;
use rampmeter_types::fabric::{
    Buffer, Forwarding, Interface, MarkingPorts, Overflow, PfcThreshold, Spray,
};
use serde::Serialize;
use serde_json::Value;

/// A value that errors name.
pub(crate) trait PlanSpelling: Copy {
    /// Returns the value in words.
    fn words(self) -> String;
}

macro_rules! spelled_as_in_plans {
    ($($of:ty),+) => {
        $(
            impl PlanSpelling for $of {
                fn words(self) -> String {
                    spell(self)
                }
            }
        )+
    };
}

spelled_as_in_plans!(Forwarding, Interface, MarkingPorts, Overflow, Spray, u16);

impl PlanSpelling for Buffer {
    fn words(self) -> String {
        match self {
            Self::PerPort(own) => format!("{} bytes a port", own.get()),
            Self::Shared { per_switch, .. } => {
                format!("{} shared bytes a switch", per_switch.get())
            }
        }
    }
}

impl PlanSpelling for Option<Bytes> {
    fn words(self) -> String {
        self.map_or_else(|| "none".to_owned(), |bytes| format!("{} bytes", bytes.get()))
    }
}

impl PlanSpelling for Option<PfcThreshold> {
    fn words(self) -> String {
        match self {
            None => "off".to_owned(),
            Some(PfcThreshold::Dynamic { alpha }) => format!("alpha {alpha}"),
            Some(PfcThreshold::Static(xoff)) => format!("{} bytes", xoff.get()),
        }
    }
}

/// Returns a value as TOML and JSON spell it, a text without quotation marks.
pub(crate) fn spell(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(text)) => text,
        Ok(other) => other.to_string(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spelled_as_in_plans() {
        assert_eq!(Forwarding::StoreAndForward.words(), "store-and-forward");
        assert_eq!(Spray::SourceRoundRobin.words(), "source-round-robin");
        assert_eq!(0_u16.words(), "0");
        assert_eq!(Some(Bytes::new(500)).words(), "500 bytes");
        assert_eq!(None::<Bytes>.words(), "none");
        assert_eq!(Buffer::PerPort(Bytes::ZERO).words(), "0 bytes a port");
    }
}
