//! Connections: how many there are, how long the head of a request may take, and how long an answer
//! waits for a reader that takes nothing of it.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt;

use crate::places::{Answering, Place, Places};

/// Where it is asked whether the program lives.
pub const HEALTH: &str = "/healthz";
const TOO_MANY: &str = "too many connections: try again\n";

/// Together, with those for /healthz alone and the files that are open besides, fewer than a program
/// may have by default.
const CONNECTIONS_MAX: usize = 900;
/// Others wait until one ends.
const GRPC_CONNECTIONS_MAX: usize = 50;
/// Calls of a connection at a time: KEDA has one connection, and a stream for each ScaledObject.
const CALLS_MAX: u32 = 1_000;
/// A connection whose other end is gone, and doesn't answer this, is closed.
const PING_EVERY: Duration = Duration::from_secs(30);
/// A browser that is reached over a bad line needs less. A connection without a request is closed
/// after that, too.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// A connection that is there for /healthz alone.
const SPARE_HEAD_WITHIN: Duration = Duration::from_secs(2);
/// A reader that takes no byte of its answer for so long is gone, or keeps it in memory.
const TAKEN_WITHIN: Duration = Duration::from_secs(30);
/// When no connection can be taken: usually since too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// The other end of a connection: a reader, or a proxy.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

#[derive(Clone, Copy, Debug)]
pub enum Protocol {
    /// HTTP/1, for browsers and Prometheus.
    Http,
    /// gRPC, which is HTTP/2 that begins without a negotiation.
    Grpc,
}

/// Serves until the program ends.
pub async fn serve(listener: TcpListener, protocol: Protocol, router: Router) -> Infallible {
    match protocol {
        Protocol::Http => serve_readers(listener, router).await,
        Protocol::Grpc => serve_calls(listener, router).await,
    }
}

async fn serve_readers(listener: TcpListener, router: Router) -> Infallible {
    let places = Places::new(CONNECTIONS_MAX);
    loop {
        let (stream, peer) = accept(&listener).await;
        // Without a place it is closed: whoever asks may try again.
        let Some(place) = places.take() else { continue };
        let number = place.number;
        let task = tokio::spawn(converse(stream, peer, router.clone(), place));
        places.has_task(number, task.abort_handle());
    }
}

async fn serve_calls(listener: TcpListener, router: Router) -> Infallible {
    let places = Arc::new(Semaphore::new(GRPC_CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        let (stream, _) = accept(&listener).await;
        let router = router.clone();
        tokio::spawn(async move {
            take_calls(stream, router).await;
            drop(place);
        });
    }
}

async fn accept(listener: &TcpListener) -> (TcpStream, Peer) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => return (stream, Peer(address.ip().to_canonical())),
            Err(error) => {
                tracing::warn!(why = error.to_string(), "no connection can be taken");
                sleep(PAUSE).await;
            }
        }
    }
}

/// What goes wrong with a connection is its reader's affair.
async fn converse(stream: TcpStream, peer: Peer, router: Router, place: Place) {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(TAKEN_WITHIN));
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        let under_way = place.begin();
        let is_let_in = !place.is_spare || request.uri().path() == HEALTH;
        let router = router.clone();
        async move {
            let answer = match is_let_in {
                true => router.oneshot(request).await?,
                false => (StatusCode::SERVICE_UNAVAILABLE, TOO_MANY).into_response(),
            };
            Ok::<_, Infallible>(answer.map(|body| Answering::new(body, under_way)))
        }
    });
    let head_within = if place.is_spare { SPARE_HEAD_WITHIN } else { HEAD_WITHIN };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_within);
    let _ = http.serve_connection(TokioIo::new(Box::pin(stream)), service).await;
}

async fn take_calls(stream: TcpStream, router: Router) {
    // One that says nothing keeps no place.
    let Ok(Ok(1)) = timeout(HEAD_WITHIN, stream.peek(&mut [0])).await else {
        return;
    };
    let mut http = http2::Builder::new(TokioExecutor::new());
    http.timer(TokioTimer::new()).keep_alive_interval(PING_EVERY).max_concurrent_streams(CALLS_MAX);
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)).await;
}
