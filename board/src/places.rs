//! Places of connections: at most so many are open. When all are taken, a new connection takes the
//! place of the oldest one that has no request under way: the head of its request isn't there yet, or
//! its next one isn't. When all have a request, a few more are let in that are answered /healthz alone:
//! what asks whether the program lives must not wait for readers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use hyper::body::{Bytes, Frame, SizeHint};
use tokio::task::AbortHandle;

/// How many connections besides may ask for /healthz.
const SPARE: usize = 50;

pub struct Places {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    last: u64,
    /// By their number: the oldest is first.
    by_number: BTreeMap<u64, Connection>,
}

struct Connection {
    /// Requests under way: one, or none.
    requests: Arc<AtomicUsize>,
    /// Ends it. `None` until its task is there.
    end: Option<AbortHandle>,
}

impl Places {
    pub fn new(max: usize) -> Arc<Places> {
        Arc::new(Places { max, open: Mutex::default() })
    }

    /// `None` when all have a request under way, also those for /healthz.
    pub fn take(self: &Arc<Places>) -> Option<Place> {
        let mut open = self.open();
        if open.by_number.len() >= self.max {
            open.end_oldest();
        }
        let is_spare = open.by_number.len() >= self.max;
        if open.by_number.len() >= self.max + SPARE {
            return None;
        }
        open.last += 1;
        let (number, requests) = (open.last, Arc::<AtomicUsize>::default());
        open.by_number.insert(number, Connection { requests: requests.clone(), end: None });
        Some(Place { places: self.clone(), number, requests, is_spare })
    }

    /// The task of a connection that took this place.
    pub fn has_task(&self, number: u64, end: AbortHandle) {
        if let Some(connection) = self.open().by_number.get_mut(&number) {
            connection.end = Some(end);
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    fn end_oldest(&mut self) {
        let is_idle = |connection: &Connection| {
            connection.end.is_some() && connection.requests.load(Ordering::Acquire) == 0
        };
        let oldest = self.by_number.iter().find(|(_, connection)| is_idle(connection));
        let Some(number) = oldest.map(|(number, _)| *number) else { return };
        if let Some(end) = self.by_number.remove(&number).and_then(|connection| connection.end) {
            end.abort();
        }
    }
}

/// Given back when its connection ends.
pub struct Place {
    places: Arc<Places>,
    pub number: u64,
    requests: Arc<AtomicUsize>,
    /// Only /healthz is answered.
    pub is_spare: bool,
}

impl Place {
    /// A request is under way until what this returns is dropped.
    pub fn begin(&self) -> Request {
        self.requests.fetch_add(1, Ordering::AcqRel);
        Request(self.requests.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open().by_number.remove(&self.number);
    }
}

pub struct Request(Arc<AtomicUsize>);

impl Drop for Request {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// An answer that is under way until its last byte.
pub struct Answering {
    body: Body,
    /// Dropped with it.
    _request: Request,
}

impl Answering {
    pub fn new(body: Body, request: Request) -> Answering {
        Answering { body, _request: request }
    }
}

impl hyper::body::Body for Answering {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection whose task goes on until it is ended.
    fn connect(places: &Arc<Places>) -> Option<(Place, tokio::task::JoinHandle<()>)> {
        let place = places.take()?;
        let task = tokio::spawn(std::future::pending());
        places.has_task(place.number, task.abort_handle());
        Some((place, task))
    }

    #[tokio::test]
    async fn a_connection_takes_the_place_of_the_oldest_without_a_request() {
        let places = Places::new(2);
        let (first, first_task) = connect(&places).unwrap();
        let (second, second_task) = connect(&places).unwrap();
        let request = first.begin();
        let (third, _) = connect(&places).unwrap();
        assert!(!third.is_spare && second_task.await.unwrap_err().is_cancelled());
        drop((second, request));
        let (fourth, _) = connect(&places).unwrap();
        assert!(!fourth.is_spare && first_task.await.unwrap_err().is_cancelled());
        drop((first, third, fourth));
        assert_eq!(places.open().by_number.len(), 0);
    }

    #[tokio::test]
    async fn when_all_have_a_request_some_are_left_for_healthz() {
        let places = Places::new(2);
        let connected: Vec<_> = (0..2).map(|_| connect(&places).unwrap()).collect();
        let _requests: Vec<_> = connected.iter().map(|(place, _)| place.begin()).collect();
        let mut spare = Vec::new();
        for _ in 0..SPARE {
            let (place, _) = connect(&places).unwrap();
            assert!(place.is_spare);
            let request = place.begin();
            spare.push((place, request));
        }
        assert!(connect(&places).is_none());
        // One that is through with its request gives its place to the next.
        let (_idle, request) = spare.swap_remove(0);
        drop(request);
        assert!(connect(&places).is_some_and(|(place, _)| place.is_spare));
    }
}
