//! Transports without arbiters.

/// Defines a [`Transport`](rampmeter_core::Transport) of hosts alone. The programs of its switches
/// have no state.
macro_rules! transport {
    (
        $(#[$about:meta])*
        pub struct $transport:ident {
            const NAME = $name:literal;
            type Config = $config:ty;
            type Header = $header:ty;
            type Host = $host:ty;
            type SwitchProgram = $program:path;
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        pub struct $transport;

        impl rampmeter_core::Transport for $transport {
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

pub(crate) use transport;
