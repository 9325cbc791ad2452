//! The C of this folder, compiled where it is needed.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{ensure, Context, Result};

/// Turns the server's clock: to be preloaded. It needs valgrind's headers.
pub fn turned_clock(directory: &Path) -> Result<PathBuf> {
    compile(directory, "turned_clock", include_str!("turned_clock.c"))
}

/// A module with DQ's commands that does the least there is.
pub fn floor(directory: &Path) -> Result<PathBuf> {
    compile(directory, "floor", include_str!("floor.c"))
}

fn compile(directory: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let source = directory.join(name).with_extension("c");
    let library = source.with_extension("so");
    std::fs::write(&source, text)?;
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source).arg("-ldl");
    let status =
        command.status().context("no C compiler, cc: scripts/setup.sh bench installs it")?;
    ensure!(status.success(), "{name}.c does not compile: valgrind's headers may be missing");
    Ok(library)
}
