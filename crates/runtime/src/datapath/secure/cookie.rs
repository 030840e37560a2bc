//! Codes that limit the cost of handshake floods.
//!
//! Every initiation has two codes. The first proves that its sender has the public key of the
//! receiver. The second is empty, until a receiver under load answers with a cookie instead of a
//! response: it proves that the sender receives packets at its address. As in WireGuard (NDSS 2017,
//! section 5.3), with HMAC-SHA256 in place of keyed BLAKE2s.

use std::net::IpAddr;

use rampmeter_types::{NodeId, Span, Time};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac};

use super::keys::PublicKey;

/// Bytes of a code, and of a cookie.
pub(super) const CODE: usize = 16;
/// Bytes of the body of a cookie's message.
pub(super) const COOKIE_BODY: usize = NONCE_LEN + CODE + 16;

pub(super) type CookieMac = [u8; CODE];

/// Lifetime of a cookie.
pub(super) const COOKIE_AGE: Span = Span::from_us(120_000_000);

/// Derives the key that both ends compute from the public key of the receiver.
fn derived(purpose: &str, key: &PublicKey) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(purpose.as_bytes());
    context.update(key.bytes());
    context.finish().as_ref().try_into().expect("SHA-256 has 32 bytes")
}

fn code(key: &[u8], parts: &[&[u8]]) -> CookieMac {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    *context.sign().as_ref().first_chunk().expect("HMAC-SHA256 has 32 bytes")
}

/// Returns the code of an initiation to the node with `key`.
pub(super) fn first_code(key: &PublicKey, message: &[u8]) -> CookieMac {
    code(&derived("rampmeter code", key), &[message])
}

/// Returns the code of an initiation, including its first code, by a node with a cookie.
pub(super) fn second_code(cookie: &CookieMac, message: &[u8]) -> CookieMac {
    code(cookie, &[message])
}

/// Returns true if two codes are equal, in constant time.
pub(super) fn is_equal(a: &CookieMac, b: &CookieMac) -> bool {
    a.iter().zip(b).fold(0, |differing, (a, b)| differing | (a ^ b)) == 0
}

fn cookie_key(key: &PublicKey) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, &derived("rampmeter cookie", key));
    LessSafeKey::new(key.expect("a key has 32 bytes"))
}

/// Cookies of a node, by the address that they prove.
#[derive(Debug)]
pub(super) struct CookieStore {
    rng: SystemRandom,
    /// Secret, the one before it, and the time at which the first was drawn.
    secrets: ([u8; 32], [u8; 32]),
    since: Time,
}

impl CookieStore {
    pub(super) fn new() -> Self {
        let rng = SystemRandom::new();
        let secrets = (random(&rng), random(&rng));
        Self { rng, secrets, since: Time::ZERO }
    }

    fn renew(&mut self, now: Time) {
        if now.saturating_since(self.since) >= COOKIE_AGE {
            self.secrets = (random(&self.rng), self.secrets.0);
            self.since = now;
        }
    }

    fn cookie(secret: &[u8; 32], node: NodeId, from: Option<IpAddr>) -> CookieMac {
        let address = match from {
            None => [0; 16],
            Some(IpAddr::V4(address)) => address.to_ipv6_mapped().octets(),
            Some(IpAddr::V6(address)) => address.octets(),
        };
        code(secret, &[&node.get().to_be_bytes(), &address])
    }

    /// Returns true if `second` is the code of a node that has a cookie for this address.
    pub(super) fn is_valid(
        &mut self,
        now: Time,
        node: NodeId,
        from: Option<IpAddr>,
        message: &[u8],
        second: &CookieMac,
    ) -> bool {
        self.renew(now);
        [self.secrets.0, self.secrets.1].iter().any(|secret| {
            let cookie = Self::cookie(secret, node, from);
            is_equal(&second_code(&cookie, message), second)
        })
    }

    /// Returns the body of a cookie for the sender of an initiation with the code `first`, under
    /// the public key of this node.
    pub(super) fn issue(
        &mut self,
        now: Time,
        node: NodeId,
        from: Option<IpAddr>,
        key: &PublicKey,
        first: &CookieMac,
    ) -> [u8; COOKIE_BODY] {
        self.renew(now);
        let mut cookie = Self::cookie(&self.secrets.0, node, from);
        let nonce: [u8; NONCE_LEN] = random(&self.rng);
        let tag = cookie_key(key)
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(first),
                &mut cookie,
            )
            .expect("a cookie is shorter than what AES-GCM seals");
        let mut body = [0; COOKIE_BODY];
        body[..NONCE_LEN].copy_from_slice(&nonce);
        body[NONCE_LEN..NONCE_LEN + CODE].copy_from_slice(&cookie);
        body[NONCE_LEN + CODE..].copy_from_slice(tag.as_ref());
        body
    }
}

/// Returns the cookie that the node with `key` has sent for an initiation with the code `first`.
pub(super) fn find_cookie(key: &PublicKey, first: &CookieMac, body: &[u8]) -> Option<CookieMac> {
    let body: &[u8; COOKIE_BODY] = body.try_into().ok()?;
    let (nonce, sealed) = body.split_first_chunk::<NONCE_LEN>()?;
    let mut sealed = sealed.to_vec();
    let nonce = Nonce::assume_unique_for_key(*nonce);
    let plain = cookie_key(key).open_in_place(nonce, Aad::from(first), &mut sealed).ok()?;
    (&*plain).try_into().ok()
}

/// Returns unpredictable numbers.
pub(super) fn random<const N: usize>(rng: &SystemRandom) -> [u8; N] {
    let mut bytes = [0; N];
    rng.fill(&mut bytes).expect("the system gave random numbers when the node started");
    bytes
}
