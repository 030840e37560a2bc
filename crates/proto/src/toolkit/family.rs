//! Families of transports without arbiters.

/// Defines a [`Family`](rampmeter_core::Family) of hosts alone. The programs of its switches have
/// no state.
macro_rules! family {
    (
        $(#[$about:meta])*
        pub struct $family:ident {
            const NAME = $name:literal;
            type Config = $config:ty;
            type Header = $header:ty;
            type Host = $host:ty;
            type SwitchProgram = $program:path;
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $family;

        impl rampmeter_core::Family for $family {
            const NAME: &'static str = $name;
            type Config = $config;
            type Header = $header;
            type Host = $host;
            type Arbiter = rampmeter_core::NoArbiter<$header, $config>;
            type SwitchProgram = $program;

            fn switch_program(
                _config: &std::sync::Arc<Self::Config>,
                _switch: rampmeter_core::SwitchFacts,
            ) -> $program {
                $program
            }
        }
    };
}

pub(crate) use family;
