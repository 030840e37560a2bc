//! Counters of endpoints and their names, defined once.

/// Defines a structure of counters with a function `report`. `report` calls a closure with the name
/// and the value of each counter, in the order of the fields. A counter has the name of its field,
/// after the prefix of the structure if there is one.
macro_rules! counters {
    ($(#[$about:meta])* $vis:vis struct $stats:ident { $($fields:tt)* }) => {
        $crate::toolkit::counters! { $(#[$about])* $vis struct $stats prefix "" { $($fields)* } }
    };
    (
        $(#[$about:meta])*
        $vis:vis struct $stats:ident prefix $prefix:literal {
            $($(#[$doc:meta])* $field_vis:vis $field:ident: u64,)*
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $stats {
            $($(#[$doc])* $field_vis $field: u64,)*
        }

        impl $stats {
            /// Calls `each` with the name and the value of every counter, in the order above.
            pub(crate) fn report(self, each: &mut dyn FnMut(&'static str, u64)) {
                $(each(concat!($prefix, stringify!($field)), self.$field);)*
            }
        }
    };
}

pub(crate) use counters;
