//! Connections: how many there are, and how long the head of a request may take.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

/// Together, and with the files that are open besides, fewer than a program may have by default.
/// Others wait until one ends.
const CONNECTIONS_MAX: usize = 900;
const GRPC_CONNECTIONS_MAX: usize = 50;
/// Calls of a connection at a time: KEDA has one connection, and a stream for each ScaledObject.
const CALLS_MAX: u32 = 1_000;
/// A connection whose other end is gone, and doesn't answer this, is closed.
const PING_EVERY: Duration = Duration::from_secs(30);
/// A browser that is reached over a bad line needs less. A connection without a request is closed
/// after that, too.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
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
    let places = Arc::new(Semaphore::new(match protocol {
        Protocol::Http => CONNECTIONS_MAX,
        Protocol::Grpc => GRPC_CONNECTIONS_MAX,
    }));
    loop {
        let place = places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, address)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    let peer = Peer(address.ip().to_canonical());
                    match protocol {
                        Protocol::Http => converse(stream, peer, router).await,
                        Protocol::Grpc => take_calls(stream, router).await,
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("no connection can be taken: {error}");
                sleep(PAUSE).await;
            }
        }
    }
}

/// What goes wrong with a connection is its reader's affair.
async fn converse(stream: TcpStream, peer: Peer, router: Router) {
    let service = router.map_request(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(peer);
        request
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
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
