//! Queues some mail. Safe to run again: what is queued already stays as it is.

use std::env;

use redis::{cmd, Connection, RedisResult};

const QUEUE: &str = "mail";

fn main() -> RedisResult<()> {
    let url = env::var("REDIS_URL").unwrap_or_else(|_| "redis://127.0.0.1:6379".into());
    let mut server = redis::Client::open(url)?.get_connection()?;
    let mut add = |id, body, options| add(&mut server, id, body, options);

    // In half a second. A worker that says nothing for ten seconds is taken for dead.
    add("welcome:ann", "ann@example.com", "DELAY 500 TTR 10000")?;
    add("welcome:ann", "ann@example.com", "DELAY 500 TTR 10000")?;
    // Now.
    add("newsletter:7", "ann@example.com bob@example.com eve@example.com", "TTR 10000")?;
    // This server won't answer: tried three times, 200 and then 400 ms apart, then dead.
    add("welcome:dan", "dan@down.example", "ATTEMPTS 3 BACKOFF 200 60000")?;
    // Not a mail address: its worker buries it.
    add("welcome:nobody", "nobody", "")?;
    // Bob pays at once, so he needs no reminder.
    add("reminder:bob", "bob@example.com", "DELAY 86400000")?;
    if cmd("DQ.DEL").arg(QUEUE).arg("reminder:bob").query(&mut server)? {
        println!("cancelled: reminder:bob");
    }
    Ok(())
}

fn add(server: &mut Connection, id: &str, body: &str, options: &str) -> RedisResult<()> {
    let options: Vec<&str> = options.split_whitespace().collect();
    // NX: an id names a job once, so adding it again, say after a timeout, doesn't mail twice.
    let added: Option<String> =
        cmd("DQ.ADD").arg(QUEUE).arg(id).arg(body).arg(options).arg("NX").query(server)?;
    println!("{}: {id}", if added.is_some() { "added" } else { "queued already" });
    Ok(())
}
