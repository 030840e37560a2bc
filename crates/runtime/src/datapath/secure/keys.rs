//! Keys of nodes: X25519, in base64 like WireGuard's.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use snow::params::DHChoice;
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::Dh;
use thiserror::Error;
use zeroize::ZeroizeOnDrop;

/// Bytes of a key.
const LEN: usize = 32;

/// Private key, which proves a node's identity. It is erased when it is dropped.
#[derive(Clone, ZeroizeOnDrop)]
pub struct PrivateKey([u8; LEN]);

/// Public key, which identifies a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; LEN]);

/// The text is not a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected 32 bytes in base64 (44 characters)")]
pub struct BadKey;

impl PrivateKey {
    /// Generates a key.
    ///
    /// # Errors
    /// The system has no random numbers.
    pub fn generate() -> std::io::Result<Self> {
        let mut bytes = [0; LEN];
        let no_numbers = |_| std::io::Error::other("the system has no random numbers");
        SystemRandom::new().fill(&mut bytes).map_err(no_numbers)?;
        Ok(Self(bytes))
    }

    /// Returns the public key that belongs to this one.
    pub fn public(&self) -> PublicKey {
        let mut dh = curve();
        dh.set(&self.0);
        PublicKey(dh.pubkey().try_into().expect("a key of X25519 has 32 bytes"))
    }

    /// Returns the key in base64, to be written to a file that only the node's user can read.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(self.0)
    }

    pub(super) fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }
}

impl PublicKey {
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn bytes(&self) -> &[u8; LEN] {
        &self.0
    }

    /// Returns true if every private key agrees with it on the same secret, zero: a point of low
    /// order, such as a key of zeros. Any host can impersonate a node with such a key.
    pub fn is_low_order(&self) -> bool {
        let (mut dh, mut secret) = (curve(), [0; LEN]);
        // Private keys are multiples of 8, so any of them reveals it.
        dh.set(&[0x77; LEN]);
        dh.dh(&self.0, &mut secret).is_err() || secret == [0; LEN]
    }
}

fn curve() -> Box<dyn Dh> {
    DefaultResolver.resolve_dh(&DHChoice::Curve25519).expect("the crate is built with X25519")
}

fn decode(text: &str) -> Result<[u8; LEN], BadKey> {
    let bytes = STANDARD.decode(text.trim()).map_err(|_| BadKey)?;
    bytes.try_into().map_err(|_| BadKey)
}

impl FromStr for PrivateKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        decode(text).map(Self)
    }
}

impl FromStr for PublicKey {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        decode(text).map(Self)
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey of {}", self.public())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&STANDARD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7748, section 6.1: the keys of Bob.
    #[test]
    fn public_keys_are_those_of_the_standard() {
        let hex = |text: &str| {
            let byte = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
            let bytes: Vec<u8> = (0..64).step_by(2).map(byte).collect();
            <[u8; LEN]>::try_from(bytes).unwrap()
        };
        let private = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
        let public = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
        assert_eq!(PrivateKey(hex(private)).public(), PublicKey(hex(public)));
    }

    /// The points of small order of RFC 7748's curve, from cr.yp.to/ecdh.html, are detected.
    #[test]
    fn points_of_low_order_are_known() {
        let order_8 = "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800";
        let mut one = [0; LEN];
        one[0] = 1;
        let minus_one = {
            let mut bytes = [0xff; LEN];
            (bytes[0], bytes[LEN - 1]) = (0xec, 0x7f);
            bytes
        };
        let digit = |at| u8::from_str_radix(&order_8[at..at + 2], 16).unwrap();
        let order_8: Vec<u8> = (0..64).step_by(2).map(digit).collect();
        for low in [[0; LEN], one, minus_one, order_8.try_into().unwrap()] {
            assert!(PublicKey(low).is_low_order(), "{low:?}");
        }
        assert!(!PrivateKey::generate().unwrap().public().is_low_order());
    }

    #[test]
    fn keys_are_read_as_they_are_written() {
        let key = PrivateKey::generate().unwrap();
        assert_eq!(key.to_base64().len(), 44);
        assert_eq!(key.to_base64().parse::<PrivateKey>().unwrap().public(), key.public());
        assert_eq!(format!(" {}\n", key.public()).parse(), Ok(key.public()));
        for bad in ["", "AAAA", &key.to_base64()[..43], "not base64, not at all!"] {
            assert_eq!(bad.parse::<PublicKey>(), Err(BadKey), "{bad}");
        }
    }
}
