//! A host with its agent, and a controller, at loopback addresses that no other test uses.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// Timeout of all operations.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A host, its peer and their controller.
pub(crate) struct Host {
    folder: TempDir,
    net: u8,
    agent: Option<Child>,
    controller: Option<Child>,
}

/// Returns the path of the library that is loaded into programs of a host.
pub(crate) fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().join("librampmeter_capton.so")
}

/// Returns true if the programs that tests run are available.
pub(crate) fn has_python() -> bool {
    let found = Command::new("python3").arg("--version").output().is_ok();
    assert!(found || std::env::var_os("RAMPMETER_CI").is_none(), "python3 is not installed");
    if !found {
        println!("skipped: python3 is not installed");
    }
    found
}

impl Host {
    /// Configures a host whose link has `mbps`, with further keys of the transport. Starts nothing.
    pub(crate) fn new(mbps: u32, keys: &str) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let net = NEXT.fetch_add(1, Ordering::SeqCst);
        let host = Self { folder: TempDir::new().unwrap(), net, agent: None, controller: None };
        let peers: String = (0..3)
            .map(|id| {
                let address = host.address(id);
                format!(
                    "[[peer]]\nid = {id}\naddress = \"{address}:7821\"\narbiter = {}\n",
                    id == 2
                )
            })
            .collect();
        for (name, id) in [("agent", 0), ("controller", 2)] {
            let socket = host.socket();
            let text = format!(
                "[node]\nid = {id}\nclock = \"monotonic\"\nsocket = {socket:?}\n\
                 [network]\nrate-mbps = {mbps}\ncontrol-rtt-us = 300\nsecurity = \"none\"\n\
                 [transport]\nname = \"capton\"\n{keys}\n{peers}"
            );
            fs::write(host.folder.path().join(format!("{name}.toml")), text).unwrap();
        }
        host
    }

    /// Configures and starts a host.
    pub(crate) fn started(mbps: u32, keys: &str) -> Self {
        let mut host = Self::new(mbps, keys);
        host.start_controller();
        host.start_agent();
        host
    }

    pub(crate) fn address(&self, id: u8) -> Ipv4Addr {
        let pid = (std::process::id() % 251) as u8;
        Ipv4Addr::new(127, 1 + pid, self.net, id + 1)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("capton.sock")
    }

    fn daemon(&self, command: &str, name: &str) -> Child {
        let mut program = Command::new(env!("CARGO_BIN_EXE_rampd"));
        program.args([command, &format!("{name}.toml")]);
        self.spawn(program, name)
    }

    fn spawn(&self, mut program: Command, name: &str) -> Child {
        let log = fs::File::create(self.folder.path().join(format!("{name}.log"))).unwrap();
        program.env("NO_COLOR", "1").current_dir(self.folder.path()).stderr(log).spawn().unwrap()
    }

    pub(crate) fn start_agent(&mut self) {
        self.agent = Some(self.daemon("agent", "agent"));
        self.wait_for("agent", "started");
    }

    /// Starts an agent with a limit of descriptors.
    pub(crate) fn start_agent_with(&mut self, descriptors: u32) {
        let mut program = Command::new("sh");
        let limited = format!("ulimit -n {descriptors}; exec \"$0\" agent agent.toml");
        program.args(["-c", &limited, env!("CARGO_BIN_EXE_rampd")]);
        self.agent = Some(self.spawn(program, "agent"));
        self.wait_for("agent", "started");
    }

    /// Returns the processor time of the agent so far, in hundredths of a second.
    pub(crate) fn agent_ticks(&self) -> u64 {
        let agent = self.agent.as_ref().expect("the agent runs");
        let stat = fs::read_to_string(format!("/proc/{}/stat", agent.id())).unwrap();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
    }

    pub(crate) fn start_controller(&mut self) {
        self.controller = Some(self.daemon("controller", "controller"));
        self.wait_for("controller", "started");
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(format!("{name}.log"))).unwrap()
    }

    fn wait_for(&self, name: &str, text: &str) {
        let until = Instant::now() + TEST_TIMEOUT;
        while !self.log(name).contains(text) {
            assert!(Instant::now() < until, "{name}: no {text} in {}", self.log(name));
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(crate) fn kill_agent(&mut self) {
        kill(self.agent.take());
    }

    pub(crate) fn kill_controller(&mut self) {
        kill(self.controller.take());
    }

    /// Ends the agent and returns its counter of a name.
    pub(crate) fn counted(&mut self, name: &str) -> u64 {
        let mut agent = self.agent.take().expect("the agent runs");
        let status = Command::new("kill").arg(agent.id().to_string()).status().unwrap();
        assert!(status.success() && agent.wait().unwrap().success(), "{}", self.log("agent"));
        let log = self.log("agent");
        let line = log.lines().find(|line| line.contains(&format!("transport {name} ")));
        line.and_then(|line| line.rsplit('=').next()?.parse().ok()).unwrap_or(0)
    }

    /// Starts a program with the library loaded.
    pub(crate) fn start(&self, argv: &[&str]) -> Child {
        self.command(argv)
            .env("LD_PRELOAD", library())
            .env("RAMPMETER_CAPTON_SOCKET", self.socket())
            .spawn()
            .unwrap()
    }

    /// Returns the command of a program without the library.
    pub(crate) fn command(&self, argv: &[&str]) -> Command {
        let mut command = Command::new(argv[0]);
        command.args(&argv[1..]).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Starts the program that sends `size` bytes to a receiver in one of its ways.
    pub(crate) fn send(&self, way: &str, receiver: &Receiver, size: usize) -> Child {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/unmodified/program.py");
        let (port, size) = (receiver.port.to_string(), size.to_string());
        let host = self.address(1).to_string();
        self.start(&["python3", program.to_str().unwrap(), way, &host, &port, &size])
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        kill(self.agent.take());
        kill(self.controller.take());
    }
}

fn kill(daemon: Option<Child>) {
    if let Some(mut daemon) = daemon {
        daemon.kill().unwrap();
        daemon.wait().unwrap();
    }
}

/// Returns the output of a program that must succeed soon.
pub(crate) fn finish(mut program: Child) -> Output {
    let until = Instant::now() + TEST_TIMEOUT;
    while program.try_wait().unwrap().is_none() {
        if Instant::now() > until {
            program.kill().unwrap();
            panic!("a program does not end: {:?}", program.wait_with_output());
        }
        thread::sleep(Duration::from_millis(2));
    }
    let output = program.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    output
}

/// Receiver on the other host, without the library.
pub(crate) struct Receiver {
    listener: TcpListener,
    pub(crate) port: u16,
}

impl Receiver {
    pub(crate) fn new(host: &Host) -> Self {
        let listener = TcpListener::bind((host.address(1), 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        Self { listener, port }
    }

    pub(crate) fn accept(&self) -> TcpStream {
        self.listener.accept().unwrap().0
    }

    /// Reads a stream to its end in a thread and checks every byte. Returns the number of bytes and
    /// the time of the last one. Answers at the end.
    pub(crate) fn read(&self) -> JoinHandle<(usize, Instant)> {
        let listener = self.listener.try_clone().unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
            let (mut all, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
            loop {
                match stream.read(&mut chunk).unwrap() {
                    0 => break,
                    n => all.extend_from_slice(&chunk[..n]),
                }
            }
            let at = Instant::now();
            check(&all);
            let _ = stream.write_all(b"all of it");
            (all.len(), at)
        })
    }
}

/// Checks words, each of which holds its position in the stream.
fn check(all: &[u8]) {
    for (k, word) in all.chunks(4).enumerate() {
        let expected = (k as u32).wrapping_mul(2_654_435_761).to_ne_bytes();
        assert_eq!(word, &expected[..word.len()], "word {k} of {}", all.len() / 4);
    }
}
