//! `rampd`: transports between Linux hosts.
//!
//! The program is [`main`] with a catalogue. A crate with a custom transport builds a daemon that
//! supports it by calling [`main`] with its own catalogue.

mod agent;
mod apps;
mod args;
mod check;
mod config;
mod decrypt;
mod differences;
mod error;
mod host;
mod init;
mod json;
mod key_log;
mod keygen;
mod load;
mod log;
mod metrics;
mod middlebox;
mod node_config;
mod pattern;
mod reload;
mod run;
mod serve;
mod status;
mod tcp;
mod timetable;
mod view;
mod watchdog;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use rampmeter_proto::Catalogue;

use self::json::Form;
use self::log::LogFormat;

/// Version and commit of this build.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("RAMPMETER_COMMIT"), ")");

/// Transports between Linux hosts.
///
/// Exit codes: 0 done, 1 the system failed, 2 bad input.
#[derive(Debug, Parser)]
#[command(version = VERSION, arg_required_else_help = true)]
struct Args {
    /// Format of log lines on standard error.
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Print results, errors and log lines as JSON, each on one line.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the transport of this host, for all its applications.
    ///
    /// SIGTERM and SIGINT let messages in flight finish, for at most
    /// `node.drain-timeout-ms`. SIGHUP reloads the configuration: peers, keys, rates. Changes that
    /// need a restart are named in the log.
    #[command(after_help = "Example:\n  rampd node /etc/rampd/node.toml")]
    Node {
        /// The configuration file.
        config: PathBuf,
    },
    /// Run an arbiter, or its standby: Fastpass's arbiter, CAPTON's controller.
    #[command(visible_alias = "controller")]
    #[command(after_help = "Example:\n  rampd arbiter /etc/rampd/arbiter.toml")]
    Arbiter {
        /// The configuration file.
        config: PathBuf,
    },
    /// Request schedules from CAPTON's controller for unmodified programs of this host.
    ///
    /// Only programs that have loaded `librampmeter_capton.so` (LD_PRELOAD) are scheduled.
    #[command(after_help = "Example:\n  rampd agent /etc/rampd/node.toml")]
    Agent {
        /// The configuration file.
        config: PathBuf,
    },
    /// Make a node's private key, and print the public key for all configurations.
    #[command(after_help = "Example:\n  rampd keygen /etc/rampd/node.key")]
    Keygen {
        /// The file for the private key; an existing one is not changed, and its public key is
        /// printed.
        file: PathBuf,
    },
    /// Write configurations and keys of nodes that send to each other.
    Init(init::InitArgs),
    /// Check configuration files, and print the parameters that follow from them.
    #[command(after_help = "Example:\n  rampd check /etc/rampd/*.toml")]
    Check {
        /// Configuration files, which must agree.
        #[arg(required = true)]
        configs: Vec<PathBuf>,
    },
    /// Show a running node: its peers, round trips, rates, queues and counters.
    #[command(after_help = "Example:\n  rampd status /etc/rampd/node.toml")]
    Status {
        /// The configuration file of the node, or its status socket.
        node: PathBuf,
    },
    /// Send the messages of a table at their times and log the arrival of messages.
    Load(load::LoadArgs),
    /// Decrypt the packets of a capture with keys that nodes have logged.
    Decrypt(decrypt::DecryptArgs),
    /// Join two interfaces by a cable that loses, duplicates and reorders frames.
    Middlebox(middlebox::MiddleboxArgs),
}

/// Runs the command for the transports of `C`.
pub fn main<C: Catalogue>() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return json::end_by_usage(&error),
    };
    let form = if args.json { Form::Json } else { Form::Text };
    log::start(if args.json { LogFormat::Json } else { args.log_format });
    log::end_on_panic();
    let result = match args.command {
        Command::Node { config } => run::node::<C>(&config),
        Command::Arbiter { config } => run::arbiter::<C>(&config),
        Command::Agent { config } => agent::run::<C>(&config),
        Command::Keygen { file } => keygen::keygen(&file, form),
        Command::Init(args) => init::init::<C>(&args, form),
        Command::Check { configs } => check::check::<C>(&configs, form),
        Command::Status { node } => status::print_status::<C>(&node, form),
        Command::Load(args) => load::load::<C>(&args),
        Command::Decrypt(args) => decrypt::decrypt(&args, form),
        Command::Middlebox(args) => middlebox::run(&args),
    };
    let code = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let exit_code = if error.is_input() { 2 } else { 1 };
            log::print_error(&error, exit_code, form);
            ExitCode::from(exit_code)
        }
    };
    log::flush();
    code
}
