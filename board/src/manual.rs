//! The man page, dq-board.1. It is committed, since a program for another processor can't be asked, and a test
//! here says when it isn't what the options are. `make docs` writes it anew, by the last line of its recipe.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use clap::CommandFactory;
use clap_mangen::roff::{roman, Roff};
use clap_mangen::Man;

use crate::args::Args;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/dq-board.1");

/// What is where the Debian package puts it, and what else to read.
const REST: [(&str, &[&str]); 3] = [
    (
        "FILES",
        &[
            "/etc/default/dq-board has the settings of the service: DQ_BOARD_REDIS, DQ_BOARD_AUTH, and in \
             DQ_BOARD_OPTIONS the other options.",
            "/var/lib/dq-board is where the service may write, and where it reads what others may not: the files of \
             --users, --actions-log, --history and --tls-key.",
        ],
    ),
    (
        "EXAMPLES",
        &[
            "dq-board --redis redis://127.0.0.1:6379 --writable --allow kick,pause",
            "dq-exporter --listen 0.0.0.0:8377 serves /metrics alone: it is dq-board under another name.",
            "systemctl enable --now dq-board",
        ],
    ),
    ("SEE ALSO", &["dq-module(8), redis-server(1), systemctl(1); /usr/share/doc/dq-board/board/README.md"]),
];

fn page() -> Result<Vec<u8>, Box<dyn Error>> {
    let mut written = Vec::new();
    let man = Man::new(Args::command()).title("DQ-BOARD").manual("DQ");
    man.render_title(&mut written)?;
    man.render_name_section(&mut written)?;
    man.render_synopsis_section(&mut written)?;
    man.render_description_section(&mut written)?;
    man.render_options_section(&mut written)?;
    let mut rest = Roff::new();
    for (title, paragraphs) in REST {
        rest.control("SH", [title]);
        for paragraph in paragraphs {
            rest.control("PP", []).text([roman(*paragraph)]);
        }
    }
    rest.to_writer(&mut written)?;
    Ok(written)
}

#[test]
fn the_manual_has_the_options_of_the_program() -> Result<(), Box<dyn Error>> {
    if env::var_os("DQ_WRITE_MANUAL").is_some() {
        fs::write(Path::new(PAGE), page()?)?;
    }
    let (committed, now) = (fs::read_to_string(PAGE)?, String::from_utf8(page()?)?);
    assert!(committed == now, "dq-board.1 isn't what the options are: make docs writes it anew");
    Ok(())
}
