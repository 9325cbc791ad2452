//! dq-board: a web page and Prometheus metrics for DQ. See docs/board.md.
//!
//! Imports run one way: `main → {web, keda} → {serve, metrics, watch} → server`, all of them → `bytes`,
//! `args` → `address`.

mod address;
mod args;
mod bytes;
mod healthcheck;
mod keda;
#[cfg(test)]
mod manual;
mod metrics;
mod serve;
mod server;
mod watch;
mod web;

use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

use args::Args;
use serve::Protocol;
use server::deployment::Deployment;
use watch::Watch;
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
    // Which cryptography TLS uses has to be said once; this one needs nothing but a C compiler.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let deployment = Deployment::new(&args.redis, &args.sentinel, args.certificates()?)?;
    let title = deployment.title();
    let watch = Arc::new(Watch::new(deployment, args.max_queues));
    let board = Board::new(&args, watch.clone())?;
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| format!("{}: {error}", args.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(watch.clone().poll());
    if let Some(listener) = keda_listener(&args).await? {
        tokio::spawn(serve::serve(listener, Protocol::Grpc, keda::router(watch.clone())));
    }
    let path = if args.metrics_only { "metrics" } else { "" };
    tracing::info!("http://{address}/{path} shows the queues of {title}");

    let router = web::router(board, &args);
    // Streams never end by themselves: they are cut off, not waited for.
    tokio::select! {
        never = serve::serve(listener, Protocol::Http, router) => match never {},
        () = told_to_stop() => Ok(()),
    }
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
