//! BullMQ: its client makes the load itself, in bench.js, and we watch.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

use crate::server;

/// Where bench.js and what it needs is installed.
pub struct BullMq {
    node: PathBuf,
    directory: PathBuf,
}

pub struct Client {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
}

impl BullMq {
    pub fn find(directory: &Path) -> Option<BullMq> {
        let is_installed =
            directory.join("node_modules/bullmq").is_dir() && directory.join("bench.js").is_file();
        let node = server::on_path("node").filter(|_| is_installed)?;
        Some(BullMq { node, directory: directory.to_owned() })
    }

    pub fn version(&self) -> Result<String> {
        let text =
            std::fs::read_to_string(self.directory.join("node_modules/bullmq/package.json"))?;
        let package: serde_json::Value = serde_json::from_str(&text)?;
        Ok(package["version"].as_str().context("no version")?.to_owned())
    }

    pub fn start(&self, port: u16, load: &str, count: usize, seconds: f64) -> Result<Client> {
        let mut command = Command::new(&self.node);
        command.arg(self.directory.join("bench.js"));
        command.args([&port.to_string(), load, &count.to_string(), &seconds.to_string()]);
        let mut command = server::under_this_process(&command);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let said = BufReader::new(child.stdout.take().context("no standard output")?);
        Ok(Client { child, said })
    }
}

impl Client {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn wait_for_begin(&mut self) -> Result<()> {
        self.line("begin").map(drop)
    }

    /// What it measured.
    pub fn wait_for_end<T: DeserializeOwned>(&mut self) -> Result<T> {
        let line = self.line("end ")?;
        serde_json::from_str(&line).with_context(|| format!("bench.js says {line}"))
    }

    /// What follows the word in the first line that begins with it.
    fn line(&mut self, word: &str) -> Result<String> {
        loop {
            let mut line = String::new();
            let count = self.said.read_line(&mut line)?;
            anyhow::ensure!(count > 0, "bench.js ended without saying {word}");
            if let Some(rest) = line.strip_prefix(word) {
                return Ok(rest.trim().to_owned());
            }
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Already ended, or ended now.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
