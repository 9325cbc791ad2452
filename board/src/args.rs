//! The command line, and what of it can't be.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;

use axum::http::HeaderName;
use clap::{Parser, ValueEnum};
use ipnet::IpNet;
use redis::{ClientTlsConfig, TlsCertificates};

use crate::address::{named, network, PublicUrl};

/// A web page and Prometheus metrics for DQ, the delay queue module for Redis and Valkey.
#[derive(Parser, Debug, Clone)]
#[command(name = "dq-board", version, max_term_width = 100)]
pub struct Args {
    /// The server: redis://[user:password@]host[:port][/db], rediss:// for TLS. Any node of a
    /// cluster will do. With --sentinel, the host is the name under which the sentinels know the
    /// primary. May be given several times, then with a name each: orders=redis://…. In the
    /// environment there is white space between them.
    #[arg(long, value_name = "[NAME=]URL", env = "DQ_BOARD_REDIS", hide_env_values = true)]
    #[arg(default_value = "redis://127.0.0.1:6379")]
    pub redis: Vec<String>,

    /// A sentinel, as host:port or a URL like that of --redis. May be given several times. With
    /// several --redis, the name of the one that it is for stands before it: orders=host:port.
    #[arg(long, value_name = "[NAME=]ADDRESS")]
    pub sentinel: Vec<String>,

    /// With rediss://: trust the certificates of this authority (PEM) instead of the system's.
    #[arg(long, value_name = "FILE")]
    pub tls_ca: Option<PathBuf>,

    /// With rediss://: show this certificate (PEM) to the server.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The key (PEM) of --tls-cert.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,

    /// Where to serve the page.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8377")]
    pub listen: SocketAddr,

    /// Ask the reader for this name and password. Must be given, or --no-auth, when others can
    /// reach --listen.
    #[arg(long, value_name = "USER:PASSWORD", env = "DQ_BOARD_AUTH", hide_env_values = true)]
    pub auth: Option<String>,

    /// Serve everybody who can reach --listen: something in front of dq-board asks for passwords.
    #[arg(long, conflicts_with = "auth")]
    pub no_auth: bool,

    /// Ask readers for a name and a password of this file, which also says what each may do: a
    /// line is name:hash:rights, the rights read, all or verbs with commas between them. It is read
    /// anew when it has changed.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["auth", "no_auth"])]
    pub users: Option<PathBuf>,

    /// Ask for a password, print its argon2 hash for a line of --users, and end.
    #[arg(long)]
    pub hash_password: bool,

    /// A header in which a proxy of --trusted-proxy says which user asks: X-Forwarded-User, for one.
    /// With --users the rights are those of that user's line, or of the line of *. A request that
    /// comes from elsewhere needs a password.
    #[arg(long, value_name = "NAME", requires = "trusted_proxy", conflicts_with = "no_auth")]
    pub user_header: Option<HeaderName>,

    /// A name under which readers reach the page. Without --auth, requests for other names than
    /// localhost and plain addresses are refused, so that no web site can read the page by pointing
    /// its own name here. May be given several times.
    #[arg(long, value_name = "NAME")]
    pub host: Vec<String>,

    /// Where readers reach the page when a proxy is in front of it: https://board.example or
    /// https://intranet.example/dq/. Its forms are taken then, whatever name the proxy asks for.
    #[arg(long, value_name = "URL")]
    pub public_url: Option<PublicUrl>,

    /// A proxy (an address or a network), whose X-Forwarded-For says who asks. May be given several
    /// times.
    #[arg(long, value_name = "ADDRESS", value_parser = network)]
    pub trusted_proxy: Vec<IpNet>,

    /// Let readers change queues: all that --allow names.
    #[arg(long)]
    pub writable: bool,

    /// Also append each action to this file, as a line of JSON.
    #[arg(long, value_name = "FILE")]
    pub actions_log: Option<PathBuf>,

    /// With --writable: only these.
    #[arg(long, value_name = "VERBS", value_delimiter = ',', requires = "writable")]
    pub allow: Option<Vec<Verb>>,

    /// Serve /metrics and nothing else. So does this program under the name dq-exporter.
    #[arg(long)]
    pub metrics_only: bool,

    /// How many queues /metrics tells of one by one: those first that are stuck, full or have dead
    /// jobs or an error of their sink, then those that are busy or have limits. The others are counted in dq_queues_left_out.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub metrics_queues: usize,

    /// Tell one by one only of queues whose names match: *, ?, [a-z] and {a,b}. May be given
    /// several times.
    #[arg(long, value_name = "PATTERN")]
    pub metrics_match: Vec<String>,

    /// Also serve KEDA there: its external scaler, by gRPC, without TLS or a password. It tells how
    /// many jobs a queue has, as /metrics does, and no more. Where others can reach it, --no-auth or
    /// --metrics-only must be given.
    #[arg(long, value_name = "ADDRESS")]
    pub keda: Option<SocketAddr>,

    /// Don't serve: tell by the exit code whether the dq-board at --listen answers, for the health
    /// check of a container.
    #[arg(long)]
    pub healthcheck: bool,

    /// How many queues are known at a time.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub max_queues: usize,

    /// Keep the charts in this file, so that a restart doesn't forget them.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prometheus", "metrics_only"])]
    pub history: Option<PathBuf>,

    /// Of how many queues charts are kept: of those in which something happened last.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub history_queues: usize,

    /// Draw charts from this Prometheus, which scrapes /metrics: http[s]://[user:password@]host[:port][/path].
    #[arg(long, value_name = "URL", env = "DQ_BOARD_PROMETHEUS", hide_env_values = true)]
    pub prometheus: Option<String>,

    /// With --prometheus: only series that have these labels, such as instance="board:8377". Needed
    /// where it has queues of several servers.
    #[arg(long, value_name = "LABELS", requires = "prometheus", default_value = "")]
    pub prometheus_match: String,
}

/// A server that --redis names.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    /// Empty when it has none, and is the only one.
    pub name: String,
    pub url: String,
    pub sentinels: Vec<String>,
}

/// What a reader may do to queues, each a right of its own.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Add,
    Kick,
    Del,
    Release,
    Pause,
    Purge,
    Alter,
    Schedule,
}

impl Verb {
    pub const ALL: [Verb; 8] = [
        Verb::Add,
        Verb::Kick,
        Verb::Del,
        Verb::Release,
        Verb::Pause,
        Verb::Purge,
        Verb::Alter,
        Verb::Schedule,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Verb::Add => "add",
            Verb::Kick => "kick",
            Verb::Del => "del",
            Verb::Release => "release",
            Verb::Pause => "pause",
            Verb::Purge => "purge",
            Verb::Alter => "alter",
            Verb::Schedule => "schedule",
        }
    }

    pub fn named(name: &[u8]) -> Option<Verb> {
        Verb::ALL.into_iter().find(|verb| verb.name().as_bytes() == name)
    }
}

impl Args {
    /// What was given, or why it can't be.
    pub fn read() -> Result<Args, String> {
        let mut args = Args::parse();
        let program = std::env::args_os().next().map(PathBuf::from).unwrap_or_default();
        args.metrics_only |= program.file_stem().is_some_and(|name| name == "dq-exporter");
        if !args.healthcheck {
            args.check()?;
        }
        Ok(args)
    }

    fn check(&self) -> Result<(), String> {
        let is_whole = |auth: &String| {
            auth.split_once(':')
                .is_some_and(|(user, password)| !user.is_empty() && !password.is_empty())
        };
        if self.auth.as_ref().is_some_and(|auth| !is_whole(auth)) {
            return Err("--auth must be user:password, and neither is empty".into());
        }
        let is_open = !self.asks_who() && !self.no_auth && !self.listen.ip().is_loopback();
        if is_open && !self.metrics_only {
            return Err(format!(
                "others can reach {}: say --auth user:password or --users, or --no-auth if something in \
                 front of dq-board asks for passwords",
                self.listen
            ));
        }
        if let Some(keda) = self.keda {
            if !keda.ip().is_loopback() && !self.no_auth && !self.metrics_only {
                return Err(format!(
                    "others can reach {keda}, and KEDA gives no password: say --no-auth, or \
                     --metrics-only in a dq-board of its own for KEDA"
                ));
            }
        }
        if self.metrics_only && self.writable {
            return Err("--metrics-only and --writable exclude each other".into());
        }
        Ok(())
    }

    /// Whether every request must say whose it is.
    pub fn asks_who(&self) -> bool {
        self.auth.is_some() || self.users.is_some() || self.user_header.is_some()
    }

    pub fn verbs(&self) -> Vec<Verb> {
        match (&self.allow, self.writable) {
            (_, false) => Vec::new(),
            (Some(verbs), true) => verbs.clone(),
            (None, true) => Verb::ALL.to_vec(),
        }
    }

    /// The servers of --redis, each with its sentinels.
    pub fn targets(&self) -> Result<Vec<Target>, String> {
        let words: Vec<&str> = self.redis.iter().flat_map(|urls| urls.split_whitespace()).collect();
        let mut targets: Vec<Target> = Vec::new();
        for word in &words {
            let (name, url) = named(word);
            let name = name.unwrap_or_default();
            // The word could hold a password: it isn't repeated.
            if words.len() > 1 && name.is_empty() {
                return Err("of several --redis each needs a name: --redis orders=redis://…".into());
            }
            if targets.iter().any(|target| target.name == name) {
                return Err(format!("--redis {name}=… is given twice"));
            }
            targets.push(Target { name: name.into(), url: url.into(), sentinels: Vec::new() });
        }
        for sentinel in &self.sentinel {
            let (name, address) = named(sentinel);
            let target = match (name, targets.as_mut_slice()) {
                (None, [only]) => Some(only),
                (name, all) => all.iter_mut().find(|target| Some(target.name.as_str()) == name),
            };
            let why = "--sentinel: begin it with the name of the --redis that it is for: \
                orders=host:port";
            target.ok_or(why)?.sentinels.push(address.into());
        }
        if targets.is_empty() {
            return Err("--redis is empty".into());
        }
        Ok(targets)
    }

    /// How many queues have charts. With --prometheus that has them.
    pub fn max_charts(&self) -> usize {
        if self.prometheus.is_some() || self.metrics_only {
            0
        } else {
            self.history_queues
        }
    }

    /// The files of the --tls options.
    pub fn certificates(&self) -> Result<TlsCertificates, String> {
        let read =
            |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
        let client_tls = match (&self.tls_cert, &self.tls_key) {
            (Some(cert), Some(key)) => {
                Some(ClientTlsConfig { client_cert: read(cert)?, client_key: read(key)? })
            }
            _ => None,
        };
        Ok(TlsCertificates { client_tls, root_cert: self.tls_ca.as_ref().map(read).transpose()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str) -> Result<(), String> {
        let words = ["dq-board"].into_iter().chain(line.split_whitespace());
        Args::try_parse_from(words).map_err(|error| error.to_string())?.check()
    }

    #[test]
    fn an_address_that_others_can_reach_needs_auth_or_no_auth() {
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("--listen [::1]:1"), Ok(()));
        assert!(check("--listen 0.0.0.0:1")
            .is_err_and(|why| why.contains("others can reach 0.0.0.0:1")));
        assert_eq!(check("--listen 0.0.0.0:1 --auth ann:secret"), Ok(()));
        assert_eq!(check("--listen 0.0.0.0:1 --no-auth"), Ok(()));
        assert_eq!(check("--listen 0.0.0.0:1 --users file"), Ok(()));
        let header = "--listen 0.0.0.0:1 --user-header x-user";
        assert_eq!(check(&format!("{header} --trusted-proxy 10.0.0.1")), Ok(()));
        assert!(check(header).is_err(), "nobody could be believed");
        assert_eq!(check("--listen 0.0.0.0:1 --metrics-only"), Ok(()));
        assert_eq!(check("--keda 127.0.0.1:2"), Ok(()));
        assert_eq!(check("--keda 0.0.0.0:2 --no-auth"), Ok(()));
        assert_eq!(check("--keda 0.0.0.0:2 --metrics-only"), Ok(()));
        for keda in ["--keda 0.0.0.0:2", "--keda [::]:2 --auth ann:secret"] {
            assert!(check(keda).is_err_and(|why| why.contains("gives no password")), "{keda}");
        }
        for open in ["ann", ":", "ann:", ":secret"] {
            assert!(check(&format!("--auth {open}")).is_err(), "{open}");
        }
        assert!(check("--allow kick").is_err());
        assert!(check("--writable --allow fly").is_err());
    }

    #[test]
    fn several_servers_have_names_and_their_own_sentinels() {
        let targets = |line: &str| {
            let args = Args::try_parse_from(line.split_whitespace()).unwrap();
            args.targets().map(|targets| {
                let told = |t: Target| format!("{}|{}|{}", t.name, t.url, t.sentinels.join(","));
                targets.into_iter().map(told).collect::<Vec<_>>().join(" ")
            })
        };
        assert_eq!(targets("dq-board"), Ok("|redis://127.0.0.1:6379|".into()));
        assert_eq!(
            targets("dq-board --redis redis://:a=b@m --sentinel h:1 --sentinel redis://:c=d@h:2"),
            Ok("|redis://:a=b@m|h:1,redis://:c=d@h:2".into())
        );
        assert_eq!(targets("dq-board --redis eu=redis://m"), Ok("eu|redis://m|".into()));
        assert_eq!(
            targets("dq-board --redis eu=redis://m --redis us=redis://n/1 --sentinel us=h:1"),
            Ok("eu|redis://m| us|redis://n/1|h:1".into())
        );
        let in_environment =
            Args::try_parse_from(["dq-board", "--redis", "a=redis://m\n b=redis://n"]);
        assert_eq!(in_environment.unwrap().targets().unwrap().len(), 2);
        for wrong in [
            "dq-board --redis redis://:secret@m --redis redis://n",
            "dq-board --redis a=redis://:secret@m --redis redis://n",
            "dq-board --redis a=redis://:secret@m --redis a=redis://n",
            "dq-board --redis a=redis://m --redis b=redis://n --sentinel h:1",
            "dq-board --redis a=redis://m --redis b=redis://n --sentinel c=h:1",
        ] {
            assert!(targets(wrong).is_err_and(|why| !why.contains("secret")), "{wrong}");
        }
    }

    #[test]
    fn each_verb_is_a_right_of_its_own() {
        let verbs = |line: &str| Args::try_parse_from(line.split_whitespace()).unwrap().verbs();
        assert_eq!(verbs("dq-board"), []);
        assert_eq!(verbs("dq-board --writable"), Verb::ALL);
        assert_eq!(verbs("dq-board --writable --allow kick,pause"), [Verb::Kick, Verb::Pause]);
    }
}
