//! Source routes: the sender of a packet chooses the port at every switch.

/// Ports by which the switches on the path forward a packet, the first switch's first. Ports are
/// numbered within their switch ([`Wiring::ports`](crate::wiring::Wiring::ports)). A host or
/// arbiter with several links names its own link before them. A route fits into the 16 bits of a
/// path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SourceRoute(u16);

impl SourceRoute {
    /// Number of ports of a switch that a route can name.
    pub const PORTS: u16 = 40;
    /// Maximum number of switches on a route.
    pub const HOPS: usize = 3;

    /// Returns the route by `ports`; `None` if there are too many, or one of them has no number in
    /// a route.
    pub fn new(ports: &[u16]) -> Option<Self> {
        if ports.len() > Self::HOPS || ports.iter().any(|&port| port >= Self::PORTS) {
            return None;
        }
        let digits = ports.iter().rev();
        Some(Self(digits.fold(0, |route, &port| route * Self::PORTS + port)))
    }

    /// Returns the route as packets carry it ([`Packet::path`](crate::Packet)).
    #[inline]
    pub const fn path(self) -> u16 {
        self.0
    }

    /// Splits a path into the port at the next switch and the path from there on.
    #[inline]
    pub const fn split(path: u16) -> (u16, u16) {
        (path % Self::PORTS, path / Self::PORTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_route_lists_its_ports_in_order() {
        for ports in [&[][..], &[0], &[39, 0, 1], &[4, 17, 39], &[39, 39, 39]] {
            let route = SourceRoute::new(ports).unwrap();
            let mut path = route.path();
            for &port in ports {
                let (next, rest) = SourceRoute::split(path);
                assert_eq!(next, port);
                path = rest;
            }
            assert_eq!(path, 0);
        }
        assert_eq!((SourceRoute::new(&[40]), SourceRoute::new(&[0; 4])), (None, None));
    }
}
