//! What goes over the wire: RESP2, and beanstalkd's protocol as far as a load needs it.
//!
//! Not a client library: the generator must cost less than the server it drives. So it writes a
//! whole pipeline with one call, and steps over replies instead of making values of them, unless a
//! workload needs what they say.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};

/// No reply of any workload takes so long; a server that hangs is an error and no endless
/// benchmark.
const LONGEST_SILENCE: Duration = Duration::from_secs(120);
const READ_BYTES: usize = 256 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Resp,
    Beanstalk,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    Simple(String),
    Error(String),
    Integer(i64),
    Bulk(Vec<u8>),
    Array(Vec<Reply>),
    Nil,
}

impl Reply {
    pub fn array(self) -> Result<Vec<Reply>> {
        match self {
            Reply::Array(items) => Ok(items),
            other => bail!("not an array: {other:?}"),
        }
    }

    pub fn bulk(self) -> Result<Vec<u8>> {
        match self {
            Reply::Bulk(bytes) => Ok(bytes),
            other => bail!("not a string: {other:?}"),
        }
    }

    pub fn integer(self) -> Result<i64> {
        match self {
            Reply::Integer(number) => Ok(number),
            other => bail!("not a number: {other:?}"),
        }
    }
}

/// Appends a command.
pub fn encode<W: AsRef<[u8]>>(out: &mut Vec<u8>, words: &[W]) {
    let mut number = itoa::Buffer::new();
    out.push(b'*');
    out.extend_from_slice(number.format(words.len()).as_bytes());
    out.extend_from_slice(b"\r\n");
    for word in words {
        let word = word.as_ref();
        out.push(b'$');
        out.extend_from_slice(number.format(word.len()).as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

pub struct Connection {
    stream: Box<dyn Stream>,
    protocol: Protocol,
    /// What has arrived; all before `read` has been looked at.
    buffer: Vec<u8>,
    read: usize,
    filled: usize,
}

impl Connection {
    pub fn unix(path: &Path) -> Result<Connection> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(LONGEST_SILENCE))?;
        Ok(Connection::over(Box::new(stream), Protocol::Resp))
    }

    pub fn tcp(port: u16, protocol: Protocol) -> Result<Connection> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONGEST_SILENCE))?;
        Ok(Connection::over(Box::new(stream), protocol))
    }

    fn over(stream: Box<dyn Stream>, protocol: Protocol) -> Connection {
        Connection { stream, protocol, buffer: vec![0; READ_BYTES], read: 0, filled: 0 }
    }

    pub fn send(&mut self, commands: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(commands)?)
    }

    /// Sends one command and returns its reply; an error reply is an error.
    pub fn call<W: AsRef<[u8]>>(&mut self, words: &[W]) -> Result<Reply> {
        let mut command = Vec::new();
        encode(&mut command, words);
        self.send(&command)?;
        self.receive().with_context(|| {
            let words: Vec<_> =
                words.iter().take(2).map(|word| String::from_utf8_lossy(word.as_ref())).collect();
            words.join(" ")
        })
    }

    pub fn receive(&mut self) -> Result<Reply> {
        let end = self.next_end()?;
        let mut at = self.read;
        let reply = parse(&self.buffer[..end], &mut at)?;
        self.read = end;
        match reply {
            Reply::Error(words) => bail!("the server says: {words}"),
            reply => Ok(reply),
        }
    }

    /// A reply as it came, to be looked at by its tokens.
    pub fn receive_raw(&mut self) -> Result<Vec<u8>> {
        let end = self.next_end()?;
        let reply = self.buffer[self.read..end].to_vec();
        self.read = end;
        Ok(reply)
    }

    /// Steps over so many replies; an error among them is an error.
    pub fn skip(&mut self, replies: usize) -> Result<()> {
        for _ in 0..replies {
            let end = self.next_end()?;
            if self.buffer[self.read] == b'-' {
                bail!(
                    "the server says: {}",
                    String::from_utf8_lossy(&self.buffer[self.read + 1..end - 2])
                );
            }
            self.read = end;
        }
        Ok(())
    }

    /// Where the next reply ends, once all of it has arrived.
    fn next_end(&mut self) -> Result<usize> {
        loop {
            if let Some(end) = self.protocol.end_of_reply(&self.buffer[..self.filled], self.read)? {
                return Ok(end);
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<()> {
        self.buffer.copy_within(self.read..self.filled, 0);
        self.filled -= self.read;
        self.read = 0;
        if self.filled == self.buffer.len() {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count =
            self.stream.read(&mut self.buffer[self.filled..]).context("waiting for a reply")?;
        ensure!(count > 0, "the server closed the connection");
        self.filled += count;
        Ok(())
    }
}

impl Protocol {
    /// The end of the reply that begins at `at`; None while some of it is missing.
    pub fn end_of_reply(self, bytes: &[u8], at: usize) -> Result<Option<usize>> {
        match self {
            Protocol::Resp => end_of_reply(bytes, at),
            Protocol::Beanstalk => end_of_beanstalk_reply(bytes, at),
        }
    }
}

fn end_of_reply(bytes: &[u8], at: usize) -> Result<Option<usize>> {
    let mut at = at;
    // How many values are still to come: an array brings more.
    let mut missing = 1;
    while missing > 0 {
        let Some(line_end) = end_of_line(bytes, at) else { return Ok(None) };
        missing -= 1;
        let length = || number(&bytes[at + 1..line_end - 2]);
        match bytes[at] {
            b'+' | b'-' | b':' => at = line_end,
            b'$' => {
                let length = length()?;
                at = if length < 0 { line_end } else { line_end + length as usize + 2 };
                if at > bytes.len() {
                    return Ok(None);
                }
            }
            b'*' => {
                missing += length()?.max(0);
                at = line_end;
            }
            other => bail!("no reply begins with byte {other}"),
        }
    }
    Ok(Some(at))
}

/// A line, and behind RESERVED a body.
fn end_of_beanstalk_reply(bytes: &[u8], at: usize) -> Result<Option<usize>> {
    let Some(line_end) = end_of_line(bytes, at) else { return Ok(None) };
    let line = &bytes[at..line_end - 2];
    if !line.starts_with(b"RESERVED ") {
        return Ok(Some(line_end));
    }
    let length = number(line.rsplit(|byte| *byte == b' ').next().unwrap_or_default())?;
    let end = line_end + usize::try_from(length)? + 2;
    Ok((end <= bytes.len()).then_some(end))
}

fn end_of_line(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = bytes.get(at..)?;
    Some(at + memchr::memchr(b'\n', rest)? + 1)
}

fn number(digits: &[u8]) -> Result<i64> {
    let text = std::str::from_utf8(digits)?;
    text.parse().with_context(|| format!("not a number: {text}"))
}

/// A reply that is known to be whole.
fn parse(bytes: &[u8], at: &mut usize) -> Result<Reply> {
    let mut tokens = Tokens { bytes, at: *at };
    let reply = value(&mut tokens)?;
    *at = tokens.at;
    Ok(reply)
}

fn value(tokens: &mut Tokens) -> Result<Reply> {
    Ok(match tokens.next().context("half a reply")?? {
        Token::Simple(line) => Reply::Simple(String::from_utf8_lossy(line).into_owned()),
        Token::Error(line) => Reply::Error(String::from_utf8_lossy(line).into_owned()),
        Token::Integer(digits) => Reply::Integer(number(digits)?),
        Token::Bulk(bytes) => Reply::Bulk(bytes.to_vec()),
        Token::Nil => Reply::Nil,
        Token::Array(length) => {
            Reply::Array((0..length).map(|_| value(tokens)).collect::<Result<_>>()?)
        }
    })
}

/// A piece of a reply, which is nothing but a view of what arrived.
#[derive(Debug, PartialEq, Eq)]
pub enum Token<'a> {
    Simple(&'a [u8]),
    Error(&'a [u8]),
    /// In digits, as it is sent back.
    Integer(&'a [u8]),
    Bulk(&'a [u8]),
    /// So many values follow.
    Array(usize),
    Nil,
}

/// The pieces of a reply that is known to be whole, one after the other.
pub struct Tokens<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Tokens<'a> {
    pub fn of(reply: &'a [u8]) -> Tokens<'a> {
        Tokens { bytes: reply, at: 0 }
    }

    fn step(&mut self) -> Result<Token<'a>> {
        let line_end = end_of_line(self.bytes, self.at).context("half a reply")?;
        let kind = self.bytes[self.at];
        let line = &self.bytes[self.at + 1..line_end - 2];
        self.at = line_end;
        Ok(match kind {
            b'+' => Token::Simple(line),
            b'-' => Token::Error(line),
            b':' => Token::Integer(line),
            _ => match usize::try_from(number(line)?) {
                Err(_) => Token::Nil,
                Ok(length) if kind == b'$' => {
                    self.at += length + 2;
                    Token::Bulk(&self.bytes[line_end..line_end + length])
                }
                Ok(length) => Token::Array(length),
            },
        })
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Result<Token<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.at < self.bytes.len()).then(|| self.step())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLIES: &[u8] = b"*2\r\n$1\r\na\r\n*3\r\n:-7\r\n$-1\r\n*0\r\n-ERR no\r\n*-1\r\n";

    #[test]
    fn a_reply_ends_where_its_last_part_ends() {
        let first = end_of_reply(REPLIES, 0).unwrap().unwrap();
        assert_eq!(&REPLIES[first..first + 4], b"-ERR");
        for cut in 0..first {
            assert_eq!(end_of_reply(&REPLIES[..cut], 0).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn replies_are_parsed_to_their_values() {
        let mut at = 0;
        let first = parse(REPLIES, &mut at).unwrap();
        let inner = Reply::Array(vec![Reply::Integer(-7), Reply::Nil, Reply::Array(vec![])]);
        assert_eq!(first, Reply::Array(vec![Reply::Bulk(b"a".to_vec()), inner]));
        assert_eq!(parse(REPLIES, &mut at).unwrap(), Reply::Error("ERR no".into()));
        assert_eq!(parse(REPLIES, &mut at).unwrap(), Reply::Nil);
        assert_eq!(at, REPLIES.len());
    }

    #[test]
    fn a_beanstalkd_job_ends_with_its_body() {
        let replies = b"RESERVED 17 5\r\na\r\nbc\r\nDELETED\r\n";
        let end = end_of_beanstalk_reply(replies, 0).unwrap().unwrap();
        assert_eq!(&replies[end..], b"DELETED\r\n");
        assert_eq!(end_of_beanstalk_reply(replies, end).unwrap(), Some(replies.len()));
        for cut in 0..end {
            assert_eq!(end_of_beanstalk_reply(&replies[..cut], 0).unwrap(), None, "cut at {cut}");
        }
    }

    #[test]
    fn a_command_is_an_array_of_strings() {
        let mut out = Vec::new();
        encode(&mut out, &["GET", "k"]);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }
}
