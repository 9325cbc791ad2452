//! Keeps charts in a file: read when the board starts, written now and then and when it ends.
//!
//! The file is written beside its place and then moved there, so it is whole at any time. One that
//! can't be read as charts is put aside.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;

use super::charts::{decode, Encoder};
use super::{now_ms, Watch};

/// How often the file is written, and less often when it is large: this many bytes a second.
const EVERY: Duration = Duration::from_secs(60);
const BYTES_A_SECOND: u64 = 64 << 10;

pub struct Keeper {
    path: PathBuf,
    servers: Arc<[Arc<Watch>]>,
    /// Whether the file could be written the last time. One writes at a time.
    is_written: Mutex<bool>,
}

impl Keeper {
    /// Reads the file, if there is one, and writes it: when that can't be, it is said before
    /// anything is lost.
    pub fn open(path: &Path, servers: Arc<[Arc<Watch>]>) -> Result<Arc<Keeper>, String> {
        let keeper = Keeper { path: path.into(), servers, is_written: Mutex::new(true) };
        let why = |error| format!("--history {}: {error}", path.display());
        keeper.read().map_err(why)?;
        keeper.write().map_err(why)?;
        Ok(Arc::new(keeper))
    }

    fn read(&self) -> io::Result<()> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) if bytes.is_empty() => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let path = self.path.display();
        match decode(&bytes) {
            Ok(mut kept) => {
                for watch in self.servers.iter() {
                    if let Some(charts) = kept.remove(&title(watch)) {
                        watch.change(|known| known.charts.restore(charts, now_ms()));
                    }
                }
                for other in kept.keys() {
                    tracing::warn!(
                        "{path}: the charts of {other}, which isn't shown, are forgotten"
                    );
                }
                Ok(())
            }
            Err(wrong) => {
                let aside = with_end(&self.path, ".damaged");
                fs::rename(&self.path, &aside)?;
                tracing::warn!(
                    "{path} can't be used: {wrong}. It is now {}; charts begin anew",
                    aside.display()
                );
                Ok(())
            }
        }
    }

    /// How many bytes it has written.
    fn write(&self) -> io::Result<u64> {
        let mut encoder = Encoder::new(self.servers.len());
        for watch in self.servers.iter() {
            watch.change(|known| known.charts.forget(now_ms()));
            encoder.put(&title(watch), &watch.known().charts);
        }
        let bytes = encoder.finish();
        let beside = with_end(&self.path, ".new");
        // The names of queues are in it: others need not read them.
        let mut file =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
        Ok(bytes.len() as u64)
    }

    /// Writes the file. What goes wrong is said once, until it goes well again.
    pub fn save(&self) -> u64 {
        let mut is_written =
            self.is_written.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let written = self.write();
        let path = self.path.display();
        match &written {
            Err(error) if *is_written => tracing::error!("{path} can't be written: {error}"),
            Ok(_) if !*is_written => tracing::info!("{path} is written again"),
            Ok(_) | Err(_) => {}
        }
        *is_written = written.is_ok();
        written.unwrap_or(0)
    }

    /// Goes on for ever.
    pub async fn keep(self: Arc<Keeper>) {
        let mut bytes = 0;
        loop {
            sleep(EVERY.max(Duration::from_secs(bytes / BYTES_A_SECOND))).await;
            let keeper = self.clone();
            bytes = tokio::task::spawn_blocking(move || keeper.save()).await.unwrap_or(0);
        }
    }
}

/// Of which server charts are.
fn title(watch: &Watch) -> String {
    if watch.name.is_empty() {
        watch.deployment.title()
    } else {
        watch.name.clone()
    }
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
