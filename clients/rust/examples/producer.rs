//! Queues some mail, now and for later, and waits for what came of one of them.

use std::error::Error;
use std::time::Duration;

use dq_client::Queue;
use serde_json::json;

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let url = std::env::var("REDIS_URL").unwrap_or("redis://127.0.0.1:6379".into());
    let client = redis::Client::open(url)?;
    let mail = Queue::new(client.get_multiplexed_async_connection().await?, "mail");

    let to = |address| json!({"to": address});
    let added = mail.add("welcome:ann", to("ann@example.com")).nx().keep(HOUR).await?;
    println!("{} {}", if added.is_added() { "queued" } else { "queued already:" }, added.id());
    mail.add("welcome:dan", to("dan@down.example")).nx().await?;
    mail.add("welcome:nobody", to("nobody")).nx().await?;
    mail.add("reminder:bob", to("bob@example.com")).delay(HOUR).nx().await?;
    // Bob has paid.
    println!("cancelled: {}", mail.del(["reminder:bob"]).await?);

    let outcome = mail.result("welcome:ann").block(Duration::from_secs(20)).await?;
    let value: Option<String> = outcome.map(|outcome| outcome.value()).transpose()?.flatten();
    println!("welcome:ann: {}", value.unwrap_or_default());
    Ok(())
}
