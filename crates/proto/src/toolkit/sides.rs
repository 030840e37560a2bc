//! Methods of an [`Endpoint`](rampmeter_types::Endpoint) that hosts delegate to their two sides.

/// Expands to methods of an endpoint that has the fields `sender`, `receiver` and `out`, and a
/// method `stats`. Hosts list the methods that do nothing special, in the trait that has them.
///
/// | trait | name | methods |
/// |---|---|---|
/// | `Observation` | `permission` | `permission`, `permission_deadline` of the sender |
/// | `HostPolicy` | `arriving` | `limit_arriving`, `arriving_excess` of the receiver's `flows` |
/// | `HostPolicy` | `data` | `is_duplicate`, `touch_if_delivered` of these flows |
/// | `HostPolicy` | `no_data` | the same of an arbiter, which receives no data |
/// | `HostPolicy` | `reconfigure(field)` | `reconfigure`, which replaces this field |
/// | any | others | the method of that name |
macro_rules! sides {
    (@ counters) => {
        fn counters(&self, each: &mut dyn FnMut(&'static str, u64)) {
            self.stats().report(each);
        }
    };
    (@ gauges) => {
        fn gauges(&self, each: &mut dyn FnMut(rampmeter_types::Gauge)) {
            self.sender.gauges(each);
        }
    };
    (@ permission) => {
        fn permission(
            &self,
            now: rampmeter_types::Time,
            msg: rampmeter_types::MsgId,
        ) -> Option<rampmeter_types::Permission> {
            self.sender.permission(now, msg)
        }

        fn permission_deadline(&self) -> rampmeter_types::Time {
            self.sender.deadline()
        }
    };
    (@ message_counts) => {
        fn message_counts(&self) -> Option<(usize, usize)> {
            Some((self.sender.len(), self.receiver.flows.len()))
        }
    };
    (@ arriving) => {
        fn limit_arriving(&mut self, per_peer: u32) {
            self.receiver.flows.limit(per_peer);
        }

        fn arriving_excess(&self) -> u64 {
            self.receiver.flows.excess()
        }
    };
    (@ data) => {
        fn touch_if_delivered(
            &mut self,
            now: rampmeter_types::Time,
            packet: &rampmeter_types::Packet<Self::Header>,
        ) -> bool {
            self.receiver.flows.touch_if_delivered(now, packet)
        }

        fn is_duplicate(&mut self, packet: &rampmeter_types::Packet<Self::Header>) -> bool {
            self.receiver.flows.is_duplicate(packet)
        }
    };
    (@ no_data) => {
        fn touch_if_delivered(
            &mut self,
            _now: rampmeter_types::Time,
            _packet: &rampmeter_types::Packet<Self::Header>,
        ) -> bool {
            false
        }

        fn is_duplicate(&mut self, _packet: &rampmeter_types::Packet<Self::Header>) -> bool {
            true
        }
    };
    (@ reconfigure $field:ident) => {
        fn reconfigure(
            &mut self,
            _now: rampmeter_types::Time,
            config: std::sync::Arc<Self::Config>,
        ) -> bool {
            self.$field = config;
            true
        }
    };
    (@ poll_control) => {
        fn poll_control(
            &mut self,
            _now: rampmeter_types::Time,
        ) -> Option<rampmeter_types::Packet<Self::Header>> {
            self.out.next_control()
        }
    };
    (@ wants_transmit) => {
        #[inline]
        fn wants_transmit(&self) -> bool {
            self.out.has_control() || self.sender.is_ready()
        }
    };
    (@ poll_timeout) => {
        #[inline]
        fn poll_timeout(&self) -> rampmeter_types::Time {
            self.receiver.deadline().min(self.sender.deadline())
        }
    };
    (@ poll_event) => {
        #[inline]
        fn poll_event(&mut self) -> Option<rampmeter_types::Event> {
            self.out.next_event()
        }
    };
    ($($methods:ident $(($field:ident))?),* $(,)?) => {
        $($crate::toolkit::sides! { @ $methods $($field)? })*
    };
}

pub(crate) use sides;
