//! The programs of README.md and examples/ do what is said of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dq_client::testing::Server;
use dq_client::Queue;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

struct Running(Child);

impl Running {
    fn start(program: &Path, url: &str) -> Self {
        let mut command = Command::new(program);
        command.env("REDIS_URL", url).stdin(Stdio::null()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn lines(&mut self, count: usize) -> Vec<String> {
        let out = BufReader::new(self.0.stdout.as_mut().unwrap());
        out.lines().take(count).map(Result::unwrap).collect()
    }

    fn ended(&mut self) -> String {
        let mut out = String::new();
        self.0.stdout.as_mut().unwrap().read_to_string(&mut out).unwrap();
        assert!(self.0.wait().unwrap().success());
        out
    }

    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn cargo(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new(env!("CARGO"));
    assert!(command.current_dir(folder).args(arguments).status().unwrap().success());
}

/// Where the built programs of a profile lie: this test is in `deps` there.
fn built() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(2).unwrap().to_owned()
}

/// The programs of the start, as a project of their own.
fn project(url: &str) -> PathBuf {
    let folder = built().join("readme");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("src/bin")).unwrap();
    let readme = fs::read_to_string(Path::new(HERE).join("README.md")).unwrap();
    let blocks = readme.split("<!-- start:").skip(1);
    for (name, block) in ["producer", "worker"].iter().zip(blocks) {
        let program = block.split("```").nth(1).unwrap().trim_start_matches("rust\n");
        let program = program.replace("redis://127.0.0.1:6379/", url);
        fs::write(folder.join(format!("src/bin/{name}.rs")), program).unwrap();
    }
    let manifest = format!(
        "[package]\nname = \"mail\"\nedition = \"2021\"\n[workspace]\n[dependencies]\n\
         dq-client = {{ path = {HERE:?} }}\n\
         redis = {{ version = \"1\", default-features = false, features = [\"tokio-comp\"] }}\n\
         serde_json = \"1\"\n\
         tokio = {{ version = \"1\", features = [\"macros\", \"rt-multi-thread\"] }}\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    // The versions that are tested here.
    fs::copy(Path::new(HERE).join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    folder
}

#[tokio::test]
async fn the_start_of_the_readme_takes_no_longer_than_it_says() {
    let server = Server::start().await.unwrap();
    let folder = project(&server.url());
    let target = built().join("readme-target");
    cargo(&folder, &["build", "--offline", "--quiet", "--target-dir", target.to_str().unwrap()]);
    let program = |name: &str| Running::start(&target.join("debug").join(name), "");

    let begun = Instant::now();
    assert_eq!(program("producer").ended(), "Added(\"welcome:ann\")\n");
    assert_eq!(program("producer").ended(), "Taken(\"welcome:ann\")\n");
    let mut worker = program("worker");
    assert_eq!(worker.lines(1), ["to \"ann@example.com\" attempt 1"]);
    assert!(begun.elapsed() >= Duration::from_secs(3));
    worker.signal("INT");
    assert_eq!(worker.ended(), "");
}

#[tokio::test]
async fn the_examples_work_together() {
    let server = Server::start().await.unwrap();
    let examples = built().join("examples");
    let mut worker = Running::start(&examples.join("worker"), &server.url());
    let said = Running::start(&examples.join("producer"), &server.url()).ended();
    let wanted =
        ["queued welcome:ann", "cancelled: 1", "welcome:ann: accepted for ann@example.com"];
    assert_eq!(said.lines().collect::<Vec<_>>(), wanted);
    let mut sent = worker.lines(2);
    sent.sort();
    let wanted = [
        "sent welcome:ann to ann@example.com, attempt 1",
        "sent welcome:dan to dan@down.example, attempt 3",
    ];
    assert_eq!(sent, wanted);
    let client = redis::Client::open(server.url()).unwrap();
    let mail = Queue::new(client.get_multiplexed_async_connection().await.unwrap(), "mail");
    let nobody = mail.result("welcome:nobody").await.unwrap().unwrap();
    assert_eq!(nobody.reason().unwrap(), "not an address: nobody");
    assert_eq!(mail.scan(0).scheduled().count(10).await.unwrap().items, ["nightly"]);
    worker.signal("TERM");
    assert_eq!(worker.ended(), "");
}
