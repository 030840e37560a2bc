//! Transports without arbiters.

/// Defines a [`Transport`](rampmeter_types::Transport) of hosts alone. The programs of its switches
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

        impl rampmeter_types::Transport for $transport {
            const NAME: &'static str = $name;
            type Config = $config;
            type Header = $header;
            type Host = $host;
            type Arbiter = rampmeter_types::NoArbiter<$header, $config>;
            type SwitchProgram = $program;

            fn switch_program(
                _config: &std::sync::Arc<Self::Config>,
                _switch: rampmeter_types::SwitchFacts,
            ) -> $program {
                $program
            }
        }
    };
}

pub(crate) use transport;
