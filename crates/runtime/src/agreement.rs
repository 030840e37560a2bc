//! Settings that all nodes of a network must have in common.
//!
//! A hello and its answer carry a digest of each [`Setting`], so that both ends can determine the
//! settings in which they differ. The digests follow the envelope: their number (1 byte), then 4
//! bytes each in the order of [`Setting::ALL`].

use std::ops::Range;

use rampmeter_types::WireError;
use rampmeter_types::wire::{Reader, Writer};

/// A setting that must be the same at all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Setting {
    /// Maximum packet size.
    Mtu,
    /// Rate of hosts' links.
    Rate,
    /// Round trip of a small packet.
    ControlRtt,
    /// Round trip of a full packet.
    DataRtt,
    /// Transport and its parameters.
    Transport,
    /// Clock.
    Clock,
    /// Nodes and their addresses.
    Peers,
}

impl Setting {
    /// All settings, in the order of their digests on the wire.
    pub const ALL: [Self; 7] = [
        Self::Mtu,
        Self::Rate,
        Self::ControlRtt,
        Self::DataRtt,
        Self::Transport,
        Self::Clock,
        Self::Peers,
    ];

    /// Returns its key in configurations.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Mtu => "network.mtu",
            Self::Rate => "network.rate-mbps",
            Self::ControlRtt => "network.control-rtt-us",
            Self::DataRtt => "network.data-rtt-us",
            Self::Transport => "transport",
            Self::Clock => "node.clock",
            Self::Peers => "peer",
        }
    }
}

/// Settings of a node, as digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SettingDigests([u32; Setting::ALL.len()]);

impl SettingDigests {
    /// Computes the digests. `text` returns a text for each setting, equal if the setting is.
    pub fn new(text: impl Fn(Setting) -> String) -> Self {
        Self(Setting::ALL.map(|setting| crc32c::crc32c(text(setting).as_bytes())))
    }

    /// Writes the digests to the front of `out`; returns the bytes written.
    pub(crate) fn encode(&self, out: &mut [u8]) -> Result<usize, WireError> {
        let mut writer = Writer::new(out);
        writer.u8(self.0.len() as u8)?;
        for digest in self.0 {
            writer.u32(digest)?;
        }
        Ok(writer.position())
    }

    /// Reads the digests of another node from `bytes`. Those that it does not send are assumed to
    /// be equal.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<Self, WireError> {
        let mut reader = Reader::new(bytes);
        let n = usize::from(reader.u8()?);
        let mut digests = self.0;
        for digest in digests.iter_mut().take(n) {
            *digest = reader.u32()?;
        }
        Ok(Self(digests))
    }

    /// Returns the settings that differ from `other`.
    pub fn differences(&self, other: &Self) -> Differences {
        let mut differences = Differences::default();
        for (setting, (own, other)) in Setting::ALL.into_iter().zip(self.0.iter().zip(other.0)) {
            if *own != other {
                differences = differences.with(setting);
            }
        }
        differences
    }

    /// Returns the number among `candidates` that the text of a setting is, if that is a decimal
    /// number: the digests of short numbers differ.
    pub fn number(&self, setting: Setting, mut candidates: Range<u32>) -> Option<u32> {
        let digest = self.0[setting as usize];
        candidates.find(|number| crc32c::crc32c(number.to_string().as_bytes()) == digest)
    }
}

/// Settings in which two nodes differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Differences(u8);

impl Differences {
    /// Returns true if there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(self, setting: Setting) -> Self {
        Self(self.0 | 1u8 << setting as u8)
    }

    /// Returns true if `setting` is among them.
    pub fn contains(self, setting: Setting) -> bool {
        self.0 & 1u8 << setting as u8 != 0
    }

    /// Returns true if messages cannot be reassembled: their packets have other sizes, or another
    /// meaning.
    pub fn is_incompatible(self) -> bool {
        self.contains(Setting::Mtu) || self.contains(Setting::Transport)
    }

    /// Iterates over the settings, in the order of [`Setting::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Setting> {
        Setting::ALL.into_iter().filter(move |setting| self.contains(*setting))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Each node reports exactly the settings that differ.
        #[test]
        fn nodes_find_differing_settings(which in prop::collection::btree_set(0..7usize, 0..7)) {
            let text = |changed: bool| if changed { "b" } else { "a" }.to_owned();
            let one = SettingDigests::new(|_| text(false));
            let other = SettingDigests::new(|s| text(which.contains(&(s as usize))));
            let mut bytes = [0; 64];
            let len = other.encode(&mut bytes).unwrap();
            let read = one.read(&bytes[..len]).unwrap();
            let found: Vec<_> = one.differences(&read).iter().collect();
            let expected: Vec<_> = which.iter().map(|&idx| Setting::ALL[idx]).collect();
            prop_assert_eq!(found, expected);
            prop_assert!(one.read(&bytes[..len - 1]).is_err());
        }

        #[test]
        fn digests_of_settings_are_read_from_any_bytes_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let _ = SettingDigests::default().read(&bytes);
        }
    }

    #[test]
    fn missing_digests_count_as_agreement() {
        let one = SettingDigests::new(|_| "a".to_owned());
        let differences = |bytes: &[u8]| one.differences(&one.read(bytes).unwrap());
        assert!(differences(&[0]).is_empty());
        assert_eq!(differences(&[1, 0, 0, 0, 0]).iter().collect::<Vec<_>>(), [Setting::Mtu]);
    }

    #[test]
    fn a_number_is_found_by_its_digest() {
        for mtu in [576, 1_500, 4_000, 9_000] {
            let agreement = SettingDigests::new(|_| mtu.to_string());
            assert_eq!(agreement.number(Setting::Mtu, 1..65_536), Some(mtu));
            assert_eq!(agreement.number(Setting::Mtu, 1..mtu), None);
        }
    }
}
