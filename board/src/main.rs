//! dq-board: a web page and Prometheus metrics for DQ. See docs/board.md.
//!
//! Imports run one way: `main → {web, keda} → {serve, metrics, watch} → server`, all of them → `bytes`,
//! `args` → `address`.

mod address;
mod args;
mod bytes;
mod keda;
mod metrics;
mod serve;
mod server;
mod watch;
mod web;

use std::future::Future;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{signal, SignalKind};

use args::Args;
use server::deployment::Deployment;
use watch::Watch;
use web::App;

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
    // Which cryptography TLS uses has to be said once; this one needs nothing but a C compiler.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let deployment = Deployment::new(&args.redis, &args.sentinel, args.certificates()?)?;
    let title = deployment.title();
    let watch = Arc::new(Watch::new(deployment, args.max_queues));
    let app = App::new(&args, watch.clone())?;
    let listener = TcpListener::bind(args.listen)
        .await
        .map_err(|error| format!("{}: {error}", args.listen))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    tokio::spawn(watch.clone().poll());
    let scaler = keda_scaler(&args, &watch).await?;
    let path = if args.metrics_only { "metrics" } else { "" };
    tracing::info!("http://{address}/{path} shows the queues of {title}");

    let router = web::router(app, &args);
    // Streams never end by themselves: they are cut off, not waited for.
    tokio::select! {
        never = serve::serve(listener, router) => match never {},
        result = scaler => result,
        () = told_to_stop() => Ok(()),
    }
}

/// What serves KEDA, where that is asked for: it ends only with an error.
async fn keda_scaler(
    args: &Args,
    watch: &Arc<Watch>,
) -> Result<impl Future<Output = Result<(), String>>, String> {
    let listener = match args.keda {
        Some(address) => {
            let why = |error| format!("--keda {address}: {error}");
            let listener = TcpListener::bind(address).await.map_err(why)?;
            tracing::info!("{address} serves KEDA's external scaler by gRPC");
            Some(listener)
        }
        None => None,
    };
    let watch = watch.clone();
    Ok(async move {
        match listener {
            Some(listener) => keda::serve(listener, watch).await,
            None => std::future::pending().await,
        }
    })
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
