//! What `INFO` says of a server that hands out nothing or takes nothing, whatever its queues are
//! like.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// The primary of a replica.
    pub replica_of: Option<String>,
    /// min-replicas-to-write asks for some, and none follows. How many it asks for isn't told.
    pub lacks_replicas: bool,
    /// The last AOF or RDB file couldn't be written: by default the server then refuses writes.
    pub disk_failed: bool,
    pub memory_is_full: bool,
}

impl Health {
    /// From the sections `replication`, `memory` and `persistence`.
    pub fn read(info: &str) -> Health {
        let field = |name: &str| {
            let mut lines = info.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim())
        };
        let number = |name: &str| field(name).and_then(|number| number.parse::<u64>().ok());
        let failed = |name: &str| field(name) == Some("err");
        let primary = || {
            format!(
                "{}:{}",
                field("master_host").unwrap_or("?"),
                field("master_port").unwrap_or("?")
            )
        };
        let most = number("maxmemory").unwrap_or(0);
        Health {
            replica_of: (field("role") == Some("slave")).then(primary),
            lacks_replicas: number("min_slaves_good_slaves") == Some(0),
            disk_failed: failed("aof_last_write_status") || failed("rdb_last_bgsave_status"),
            memory_is_full: most > 0 && number("used_memory").unwrap_or(0) >= most,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_well_has_nothing_to_say() {
        let well =
            "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n# Memory\r\nused_memory:9\r\n\
            maxmemory:0\r\naof_last_write_status:ok\r\nrdb_last_bgsave_status:ok\r\n";
        assert_eq!(Health::read(well), Health::default());
        assert_eq!(Health::read(""), Health::default());
    }

    #[test]
    fn each_trouble_is_read_from_its_field() {
        let well = Health::default;
        for (info, health) in [
            (
                "role:slave\r\nmaster_host:10.0.0.1\r\nmaster_port:6379\r\n",
                Health { replica_of: Some("10.0.0.1:6379".into()), ..well() },
            ),
            ("min_slaves_good_slaves:0\r\n", Health { lacks_replicas: true, ..well() }),
            ("min_slaves_good_slaves:1\r\n", well()),
            ("aof_last_write_status:err\r\n", Health { disk_failed: true, ..well() }),
            ("rdb_last_bgsave_status:err\r\n", Health { disk_failed: true, ..well() }),
            ("used_memory:11\r\nmaxmemory:10\r\n", Health { memory_is_full: true, ..well() }),
            ("used_memory:9\r\nmaxmemory:10\r\n", well()),
        ] {
            assert_eq!(Health::read(info), health, "{info}");
        }
    }
}
