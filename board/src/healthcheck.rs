//! `--healthcheck`: whether the dq-board at --listen is well. For an image that has no other program in it.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
const REQUEST: &[u8] = b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n";
const WELL: &[u8; 12] = b"HTTP/1.0 200";

/// Why it isn't, if it isn't.
pub fn healthcheck(listen: SocketAddr) -> Result<(), String> {
    let address = reached_by(listen);
    let mut answer = [0; WELL.len()];
    let asked = TcpStream::connect_timeout(&address, PATIENCE).and_then(|mut stream| {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.write_all(REQUEST)?;
        stream.read_exact(&mut answer)
    });
    match asked {
        Err(error) => Err(format!("{address}: {error}")),
        Ok(()) if &answer == WELL => Ok(()),
        Ok(()) => Err(format!("{address} answers otherwise: {}", answer.escape_ascii())),
    }
}

/// A dq-board that listens on all addresses is reached by the machine's own.
fn reached_by(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}
