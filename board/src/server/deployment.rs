//! Which servers hold the queues: one, the one that sentinels name, or the primaries of a cluster.
//! All three are a list of nodes; only how it is found out differs.

use std::sync::{Arc, RwLock};

use redis::{
    Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, Pipeline, TlsCertificates, Value,
};

use super::node::{refused, Node, Reply};
use super::replies::{array, bytes, fields, number, Field};
use super::{Result, Trouble};

pub struct Deployment {
    /// How to log in, to which database, by TLS or not: the same for all nodes.
    manner: ConnectionInfo,
    certificates: TlsCertificates,
    sentinels: Vec<Node>,
    /// With sentinels the name that they know the primary by, else the host of --redis.
    host: String,
    nodes: RwLock<Vec<Arc<Node>>>,
}

impl Deployment {
    pub fn new(
        url: &str,
        sentinels: &[String],
        certificates: TlsCertificates,
    ) -> std::result::Result<Deployment, String> {
        let manner = parse("--redis", url)?;
        let host = match manner.addr() {
            ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => host.clone(),
            other => other.to_string(),
        };
        let node = |info: ConnectionInfo| {
            Ok::<_, String>(Node::new(info.addr().to_string(), open(info, &certificates)?))
        };
        let sentinels = sentinels
            .iter()
            .map(|address| match address.contains("://") {
                true => node(parse("--sentinel", address)?),
                false => node(parse("--sentinel", &format!("redis://{address}"))?),
            })
            .collect::<std::result::Result<Vec<_>, String>>()?;
        let nodes =
            if sentinels.is_empty() { vec![Arc::new(node(manner.clone())?)] } else { Vec::new() };
        Ok(Deployment { manner, certificates, sentinels, host, nodes: RwLock::new(nodes) })
    }

    /// For people: no password in it.
    pub fn title(&self) -> String {
        let scheme = if matches!(self.manner.addr(), ConnectionAddr::TcpTls { .. }) {
            "rediss"
        } else {
            "redis"
        };
        let database = match self.manner.redis_settings().db() {
            0 => String::new(),
            database => format!("/{database}"),
        };
        if self.sentinels.is_empty() {
            format!("{scheme}://{}{database}", self.manner.addr())
        } else {
            format!("{scheme}://{}{database} by sentinel", self.host)
        }
    }

    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.read().map(|nodes| nodes.clone()).unwrap_or_default()
    }

    /// Finds out anew which nodes there are. On trouble the old ones stay.
    pub async fn find_nodes(&self) -> Result<()> {
        let addresses = if self.sentinels.is_empty() {
            match self.cluster_primaries().await? {
                Some(addresses) => addresses,
                None => return Ok(()),
            }
        } else {
            vec![self.primary_by_sentinel().await?]
        };
        let known = self.nodes();
        let nodes = addresses
            .into_iter()
            .map(|(host, port)| {
                match known.iter().find(|node| node.address == address(&host, port)) {
                    Some(node) => Ok(node.clone()),
                    None => self.node_at(&host, port),
                }
            })
            .collect::<Result<Vec<_>>>()?;
        if let Ok(mut now) = self.nodes.write() {
            *now = nodes;
        }
        Ok(())
    }

    /// Asks the node that holds a queue. In a cluster that is found out by asking.
    pub async fn ask(
        &self,
        hint: Option<Arc<Node>>,
        commands: &mut Pipeline,
    ) -> Result<(Arc<Node>, Vec<Reply>)> {
        let first = hint.or_else(|| self.nodes().into_iter().next());
        let first = first.ok_or_else(|| Trouble::Unreachable {
            address: self.host.clone(),
            why: "no sentinel has named it yet".into(),
        })?;
        let replies = first.ask(commands).await?;
        let Some((host, port)) = replies.iter().find_map(|reply| moved_to(reply.as_ref().err()?))
        else {
            return Ok((first, replies));
        };
        let owner = match self.nodes().into_iter().find(|node| node.address == address(&host, port))
        {
            Some(node) => node,
            None => self.node_at(&host, port)?,
        };
        let replies = owner.ask(commands).await?;
        Ok((owner, replies))
    }

    /// `None` when the server is none of a cluster.
    async fn cluster_primaries(&self) -> Result<Option<Vec<(String, u16)>>> {
        let mut trouble = None;
        for node in self.nodes() {
            match primaries_by(&node).await {
                Ok(primaries) => return Ok(primaries),
                Err(error) => trouble = Some(error),
            }
        }
        Err(trouble.unwrap_or(Trouble::Strange("no node is known")))
    }

    async fn primary_by_sentinel(&self) -> Result<(String, u16)> {
        let mut trouble = Trouble::Strange("no sentinel");
        for sentinel in &self.sentinels {
            let mut ask = redis::cmd("SENTINEL");
            ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.host);
            match sentinel.ask_one(ask).await {
                Ok(Value::Nil) => {
                    let why = format!("{} knows no primary of that name", sentinel.address);
                    trouble = Trouble::Unreachable { address: self.host.clone(), why };
                }
                Ok(reply) => return address_of(&mut array(reply)?.into_iter(), &self.host),
                Err(error) => trouble = error,
            }
        }
        Err(trouble)
    }

    fn node_at(&self, host: &str, port: u16) -> Result<Arc<Node>> {
        let addr = match self.manner.addr() {
            ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
                host: host.into(),
                port,
                insecure: *insecure,
                tls_params: tls_params.clone(),
            },
            _ => ConnectionAddr::Tcp(host.into(), port),
        };
        let client = open(self.manner.clone().set_addr(addr), &self.certificates);
        let address = address(host, port);
        match client {
            Ok(client) => Ok(Arc::new(Node::new(address, client))),
            Err(why) => Err(Trouble::Unreachable { address, why }),
        }
    }
}

/// The words of the error could hold the password: they are not passed on.
fn parse(option: &str, url: &str) -> std::result::Result<ConnectionInfo, String> {
    let no = |error: redis::RedisError| {
        format!("{option}: no such URL as redis://host:port ({:?})", error.kind())
    };
    url.into_connection_info().map_err(no)
}

fn open(
    info: ConnectionInfo,
    certificates: &TlsCertificates,
) -> std::result::Result<Client, String> {
    let client = if matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        Client::build_with_tls(info, certificates.clone())
    } else {
        Client::open(info)
    };
    client.map_err(|error| error.to_string())
}

fn address(host: &str, port: u16) -> String {
    ConnectionAddr::Tcp(host.into(), port).to_string()
}

/// HELLO tells the mode; CLUSTER SLOTS the primaries, each first in its entries.
async fn primaries_by(node: &Node) -> Result<Option<Vec<(String, u16)>>> {
    let hello = fields(node.ask_one(redis::cmd("HELLO")).await?)?.unwrap_or_default();
    let mode = hello.into_iter().find(|(name, _)| name == "mode").map(|(_, mode)| mode);
    if mode != Some(Field::Bytes(b"cluster".to_vec())) {
        return Ok(None);
    }
    let mut slots = redis::cmd("CLUSTER");
    slots.arg("SLOTS");
    let own_host = node.address.rsplit_once(':').map_or("", |(host, _)| host);
    let mut primaries = Vec::new();
    for range in array(node.ask_one(slots).await?)? {
        let primary =
            array(range)?.into_iter().nth(2).ok_or(Trouble::Strange("a slot of nobody"))?;
        let primary = address_of(&mut array(primary)?.into_iter(), own_host)?;
        if !primaries.contains(&primary) {
            primaries.push(primary);
        }
    }
    Ok(Some(primaries))
}

/// Host and port; a host that isn't said is the one that was asked.
fn address_of(parts: &mut impl Iterator<Item = Value>, own_host: &str) -> Result<(String, u16)> {
    let host = match parts.next() {
        Some(Value::Nil) | None => String::new(),
        Some(host) => String::from_utf8(bytes(host)?).unwrap_or_default(),
    };
    let port = parts.next().ok_or(Trouble::Strange("no port"))?;
    let port = match port {
        Value::Int(_) => number(port)?.try_into().ok(),
        text => String::from_utf8(bytes(text)?).ok().and_then(|port| port.parse().ok()),
    };
    let host = if host.is_empty() || host == "?" { own_host.to_string() } else { host };
    Ok((host, port.ok_or(Trouble::Strange("no port"))?))
}

fn moved_to(error: &redis::RedisError) -> Option<(String, u16)> {
    let (address, _) = error.redirect_node()?;
    let (host, port) = address.rsplit_once(':')?;
    Some((host.to_string(), port.parse().ok()?))
}

/// The outcome of one command of several.
pub fn outcome(reply: Option<Reply>) -> Result<Value> {
    reply.ok_or(Trouble::Strange("no reply"))?.map_err(refused)
}
