//! What a server says of itself: INFO, and the configs that our user may see.

use redis::{Pipeline, Value};

use super::deployment::outcome;
use super::node::Node;
use super::replies::{bytes, text};
use super::{Result, Trouble};

const SECTIONS: [&str; 6] = ["server", "clients", "memory", "persistence", "replication", "dq"];

#[derive(Debug)]
pub struct About {
    info: Vec<(String, String)>,
    /// `dq.*`, by name.
    pub configs: Result<Vec<(String, String)>>,
    /// When the server saves by itself; empty when it doesn't.
    pub save: Result<String>,
}

/// A replica, as its primary sees it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Replica {
    pub address: String,
    pub state: String,
    /// Since its last word.
    pub lag_s: Option<u64>,
    pub offset: u64,
}

impl About {
    pub async fn read(node: &Node) -> Result<About> {
        let mut commands = Pipeline::new();
        for section in SECTIONS {
            commands.cmd("INFO").arg(section);
        }
        for config in ["dq.*", "save"] {
            commands.cmd("CONFIG").arg("GET").arg(config);
        }
        let mut replies = node.ask(&mut commands).await?.into_iter();
        let mut info = String::new();
        for reply in replies.by_ref().take(SECTIONS.len()) {
            info.push_str(&String::from_utf8_lossy(&bytes(outcome(Some(reply))?)?));
            info.push_str("\r\n");
        }
        let configs = outcome(replies.next()).and_then(configs);
        let save = outcome(replies.next()).and_then(configs_text);
        Ok(About { info: lines(&info), configs, save })
    }

    /// What isn't said is empty.
    pub fn text(&self, field: &str) -> &str {
        let found = self.info.iter().find(|(name, _)| name == field);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// What isn't said, or is below zero, as what has never been is, is `None`.
    pub fn number(&self, field: &str) -> Option<u64> {
        self.text(field).parse().ok()
    }

    pub fn is(&self, field: &str) -> bool {
        self.text(field) == "1"
    }

    /// The fields that begin so, in their order, without that beginning.
    pub fn beginning<'a>(&'a self, start: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.info
            .iter()
            .filter_map(move |(name, value)| Some((name.strip_prefix(start)?, value.as_str())))
    }

    /// `slave0:ip=10.0.0.2,port=6379,state=online,offset=17,lag=0`
    pub fn replicas(&self) -> impl Iterator<Item = Replica> + '_ {
        let numbered =
            |(number, value): (&str, &str)| number.parse::<u32>().is_ok().then(|| replica(value));
        self.beginning("slave").filter_map(numbered)
    }
}

fn lines(info: &str) -> Vec<(String, String)> {
    let pairs = info.lines().filter_map(|line| line.split_once(':'));
    pairs.map(|(name, value)| (name.into(), value.trim().into())).collect()
}

fn replica(value: &str) -> Replica {
    let field = |name: &str| {
        let mut pairs = value.split(',').filter_map(|pair| pair.split_once('='));
        pairs.find(|(key, _)| *key == name).map(|(_, value)| value).unwrap_or_default()
    };
    Replica {
        address: format!("{}:{}", field("ip"), field("port")),
        state: field("state").into(),
        lag_s: field("lag").parse().ok(),
        offset: field("offset").parse().unwrap_or(0),
    }
}

fn configs(reply: Value) -> Result<Vec<(String, String)>> {
    let pairs = reply.into_map_iter().map_err(|_| Trouble::Strange("no map"))?;
    let mut configs =
        pairs.map(|(name, value)| Ok((text(name)?, text(value)?))).collect::<Result<Vec<_>>>()?;
    configs.sort();
    Ok(configs)
}

fn configs_text(reply: Value) -> Result<String> {
    Ok(configs(reply)?.into_iter().next().map(|(_, value)| value).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_who_its_replicas_are_and_how_far_they_lag() {
        let info = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n\
            slave0:ip=10.0.0.2,port=6379,state=online,offset=17,lag=0\r\n\
            slave1:ip=fd00::2,port=6380,state=wait_bgsave,offset=0,lag=-1,type=replica\r\n\
            slave_repl_offset:9\r\nrdb_last_bgsave_time_sec:-1\r\n";
        let about = About { info: lines(info), configs: Ok(Vec::new()), save: Ok(String::new()) };
        let replicas: Vec<_> = about.replicas().collect();
        let online = Replica {
            address: "10.0.0.2:6379".into(),
            state: "online".into(),
            lag_s: Some(0),
            offset: 17,
        };
        assert_eq!(replicas.first(), Some(&online));
        assert_eq!(replicas.len(), 2);
        assert_eq!((replicas[1].state.as_str(), replicas[1].lag_s), ("wait_bgsave", None));
        assert_eq!((about.text("role"), about.number("connected_slaves")), ("master", Some(2)));
        assert_eq!((about.number("rdb_last_bgsave_time_sec"), about.text("none")), (None, ""));
    }
}
