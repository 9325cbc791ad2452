//! Servers of our own: each in a directory of its own, ended when it is dropped, and by the kernel
//! should this process die.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};
use tempfile::TempDir;

use crate::wire::{Connection, Protocol};

/// Nothing is written to disk, and nothing is rewritten in the midst of a measurement, unless that
/// is what is measured.
const CONFIG: &str = "\
bind 127.0.0.1
save \"\"
appendonly no
appendfsync everysec
auto-aof-rewrite-percentage 0
enable-debug-command yes
";

pub struct Server {
    child: Child,
    directory: TempDir,
    log: PathBuf,
}

impl Server {
    /// A Redis or Valkey. `wrapper` runs the program, with its arguments: valgrind, or nothing.
    /// `config` are lines of redis.conf.
    pub fn redis(program: &Path, wrapper: Option<Command>, config: &[String]) -> Result<Server> {
        Server::redis_in(new_directory()?, program, wrapper, config)
    }

    /// The same with what another server has left in its directory.
    pub fn redis_in(
        directory: TempDir,
        program: &Path,
        wrapper: Option<Command>,
        config: &[String],
    ) -> Result<Server> {
        let path = directory.path().display();
        let lines = format!(
            "{CONFIG}dir \"{path}\"\nunixsocket \"{path}/socket\"\n{}\n",
            config.join("\n")
        );
        let config_path = directory.path().join("redis.conf");
        fs::write(&config_path, lines)?;
        let mut command = wrapper.unwrap_or_else(|| Command::new("env"));
        command.arg(program).arg(config_path);
        Server::start(directory, command)
    }

    /// Runs a command as a server.
    pub fn start(directory: TempDir, command: Command) -> Result<Server> {
        let log = directory.path().join("log");
        let file = File::create(&log)?;
        let mut command = under_this_process(&command);
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        Ok(Server { child, directory, log })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Waits until a Redis answers at its socket. `between` runs between two tries.
    pub fn connect(&mut self, within: Duration, between: impl FnMut()) -> Result<Connection> {
        let socket = self.directory().join("socket");
        self.until_answered(within, between, || {
            let mut connection = Connection::unix(&socket)?;
            connection.call(&["PING"])?;
            Ok(connection)
        })
    }

    /// Waits until something listens at a port.
    pub fn connect_to(
        &mut self,
        port: u16,
        protocol: Protocol,
        within: Duration,
    ) -> Result<Connection> {
        self.until_answered(within, || {}, || Connection::tcp(port, protocol))
    }

    fn until_answered(
        &mut self,
        within: Duration,
        mut between: impl FnMut(),
        mut connect: impl FnMut() -> Result<Connection>,
    ) -> Result<Connection> {
        let deadline = Instant::now() + within;
        loop {
            if let Ok(connection) = connect() {
                return Ok(connection);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended ({status}):\n{}", self.log());
            }
            if Instant::now() > deadline {
                bail!("the server did not start:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
            between();
        }
    }

    /// Waits for a server that was told to end.
    pub fn wait(&mut self) -> Result<()> {
        let status = self.child.wait()?;
        if !status.success() {
            bail!("the server ended with {status}:\n{}", self.log());
        }
        Ok(())
    }

    /// Ends it, and leaves what it has written.
    pub fn into_directory(mut self) -> Result<TempDir> {
        self.end();
        Ok(std::mem::replace(&mut self.directory, new_directory()?))
    }

    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    fn end(&mut self) {
        // Already ended, or ended now: nothing else can come of it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}

pub fn new_directory() -> Result<TempDir> {
    Ok(tempfile::Builder::new().prefix("dq-bench-").tempdir()?)
}

/// The same command, which the kernel ends when this process does.
pub fn under_this_process(wrapped: &Command) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(wrapped.get_program()).args(wrapped.get_args());
    for (name, value) in wrapped.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}

/// One that is free now.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The first program of that name on PATH.
pub fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
}

/// "7.0.15", of a Redis or a Valkey.
pub fn version(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").output().with_context(|| {
        format!("running {}: scripts/setup.sh count installs it", program.display())
    })?;
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = words.split_whitespace().find_map(|word| word.strip_prefix("v="));
    Ok(version.with_context(|| format!("no version in: {words}"))?.to_owned())
}
