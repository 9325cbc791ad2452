//! Connections: how many there are, and how long the head of a request may take.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::Router;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tower::ServiceExt;

/// With the files that are open besides, fewer than a program may have by default. Others wait
/// until one ends.
const CONNECTIONS_MAX: usize = 900;
/// A browser that is reached over a bad line needs less. A connection without a request is closed
/// after that, too.
const HEAD_WITHIN: Duration = Duration::from_secs(10);
/// When no connection can be taken: usually since too many files are open.
const PAUSE: Duration = Duration::from_millis(100);

/// The other end of a connection: a reader, or a proxy.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// Serves until the program ends.
pub async fn serve(listener: TcpListener, router: Router) -> Infallible {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let place = places.clone().acquire_owned().await;
        match listener.accept().await {
            Ok((stream, address)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    converse(stream, Peer(address.ip().to_canonical()), router).await;
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
