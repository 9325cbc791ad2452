//! A real server with the module, for a program's own tests.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! let server = dq_client::testing::Server::start().await?;
//! let client = redis::Client::open(server.url());
//! # Ok(()) }
//! ```
//!
//! The module is the file that `DQ_MODULE` names. The server is `DQ_SERVER`, or the first of
//! `redis-server` and `valkey-server` on PATH.

use std::env;
use std::io::{Error, Result};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const START_WITHIN: Duration = Duration::from_secs(30);

/// A server on a free port of 127.0.0.1. It keeps nothing, and ends when it is dropped.
pub struct Server {
    process: Child,
    port: u16,
}

impl Server {
    /// Starts one, and waits until it answers.
    pub async fn start() -> Result<Self> {
        let module = env::var_os("DQ_MODULE")
            .ok_or_else(|| Error::other("DQ_MODULE must be the path of the module, libdq.so"))?;
        let module = PathBuf::from(module).canonicalize()?;
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let process = Command::new(program()?)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""])
            // It loads no file of another server, and leaves none that it had from a primary.
            .args(["--dbfilename", &format!("dq-test-{port}.rdb"), "--rdb-del-sync-files", "yes"])
            .arg("--dir")
            .arg(env::temp_dir())
            .arg("--loadmodule")
            .arg(module)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()?;
        let mut server = Self { process, port };
        let deadline = Instant::now() + START_WITHIN;
        while !matches!(server.said("PING").await, Ok(true)) {
            if server.process.try_wait()?.is_some() || Instant::now() > deadline {
                return Err(Error::other("the server did not start: run it by hand to see why"));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(server)
    }

    /// Its address, for `redis::Client::open`.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Removes all that is in it.
    pub async fn flush(&self) -> Result<()> {
        match self.said("FLUSHALL SYNC").await? {
            true => Ok(()),
            false => Err(Error::other("FLUSHALL was refused")),
        }
    }

    /// Whether the reply to a command in plain text is no error.
    async fn said(&self, command: &str) -> Result<bool> {
        let mut connection = TcpStream::connect(("127.0.0.1", self.port)).await?;
        connection.write_all(format!("{command}\r\n").as_bytes()).await?;
        Ok(connection.read_u8().await? == b'+')
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Result<PathBuf> {
    if let Some(named) = env::var_os("DQ_SERVER") {
        return Ok(named.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path)
        .flat_map(|folder| ["redis-server", "valkey-server"].map(|name| folder.join(name)));
    places
        .find(|place| place.is_file())
        .ok_or_else(|| Error::other("no redis-server or valkey-server on PATH: set DQ_SERVER"))
}
