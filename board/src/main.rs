//! dq-board: a web page and Prometheus metrics for DQ. See docs/board/README.md.
//!
//! Imports run one way: `main → {web, keda} → {serve → places, prometheus → metrics, watch} → server → reasons`, all of
//! them → `bytes`, `args` → `address`.

mod address;
mod args;
mod bytes;
mod healthcheck;
mod keda;
#[cfg(test)]
mod manual;
mod metrics;
mod places;
mod prometheus;
mod reasons;
mod serve;
mod server;
mod watch;
mod web;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

use args::{Args, Target};
use serve::Protocol;
use server::deployment::Deployment;
use watch::{Keeper, Watch};
use web::Board;

#[tokio::main]
async fn main() -> ExitCode {
    let is_seen = std::io::stderr().is_terminal();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_ansi(is_seen)
        .init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            tracing::error!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), String> {
    let args = Args::read()?;
    if args.healthcheck {
        return healthcheck::healthcheck(args.listen);
    }
    if args.hash_password {
        return hash_password();
    }
    // Which cryptography TLS uses has to be said once; this one needs nothing but a C compiler.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let servers = servers(&args)?;
    let keeper =
        args.history.as_ref().map(|path| Keeper::open(path, servers.clone())).transpose()?;
    let board = Board::new(&args, servers.clone())?;
    let followed = board.clone();
    tokio::spawn(async move { followed.follow_users().await });
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| format!("{}: {error}", args.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    servers.iter().for_each(|watch| {
        tokio::spawn(watch.clone().poll());
    });
    if let Some(keeper) = &keeper {
        tokio::spawn(keeper.clone().keep());
    }
    if let Some(listener) = keda_listener(&args).await? {
        tokio::spawn(serve::serve(listener, Protocol::Grpc, keda::router(servers.clone())));
    }
    let path = if args.metrics_only { "metrics" } else { "" };
    let titles: Vec<_> = servers.iter().map(|watch| watch.deployment.title()).collect();
    tracing::info!("http://{address}/{path} shows the queues of {}", titles.join(", "));

    let router = web::router(board, &args);
    // Streams never end by themselves: they are cut off, not waited for.
    tokio::select! {
        never = serve::serve(listener, Protocol::Http, router) => match never {},
        () = told_to_stop() => {}
    }
    if let Some(keeper) = keeper {
        keeper.save();
    }
    Ok(())
}

/// From a person without an echo, or from a pipe: a line.
fn hash_password() -> Result<(), String> {
    let password = if std::io::stdin().is_terminal() {
        rpassword::prompt_password("Password: ")
    } else {
        std::io::stdin().lines().next().unwrap_or_else(|| Ok(String::new()))
    };
    let password = password.map_err(|error| error.to_string())?;
    if password.is_empty() {
        return Err("a password is needed".into());
    }
    println!("{}", web::hash(password.as_bytes())?);
    Ok(())
}

/// What --redis names, in that order.
fn servers(args: &Args) -> Result<Arc<[Arc<Watch>]>, String> {
    let certificates = args.certificates()?;
    let watch = |target: Target| {
        let deployment = Deployment::new(&target.url, &target.sentinels, certificates.clone())?;
        Ok(Arc::new(Watch::new(target.name, deployment, args.max_queues, args.max_charts())))
    };
    args.targets()?.into_iter().map(watch).collect()
}

/// Where KEDA is served, if that is asked for.
async fn keda_listener(args: &Args) -> Result<Option<TcpListener>, String> {
    let Some(address) = args.keda else {
        return Ok(None);
    };
    let listener =
        TcpListener::bind(address).await.map_err(|error| format!("--keda {address}: {error}"))?;
    tracing::info!("{address} serves KEDA's external scaler by gRPC");
    Ok(Some(listener))
}

async fn told_to_stop() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
