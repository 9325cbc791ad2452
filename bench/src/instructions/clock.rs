//! This side of turned_clock.c: turns the clock of the servers that were started with it.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{ensure, Result};
use memmap2::MmapMut;

const REQUEST_WITHIN: Duration = Duration::from_secs(30);

#[derive(Clone, Copy)]
pub enum Request {
    CountFromNow = 1,
    Dump = 2,
}

/// The clock of one server: a page of memory that both share. Its layout is that of `struct page`.
pub struct Clock {
    page: MmapMut,
    requests: u32,
}

impl Clock {
    pub fn new(path: &Path) -> Result<Clock> {
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)?;
        file.set_len(4096)?;
        // SAFETY: only the server that is given this file, which nobody else knows, touches it, and
        // it doesn't cut it.
        let page = unsafe { MmapMut::map_mut(&file)? };
        Ok(Clock { page, requests: 0 })
    }

    pub fn turn(&self, by_ns: u64) {
        self.word::<AtomicU64>(0).fetch_add(by_ns, Ordering::SeqCst);
    }

    /// Is carried out at the next return of the server's epoll_wait.
    pub fn request(&mut self, request: Request) {
        self.word::<AtomicU32>(8).store(request as u32, Ordering::SeqCst);
        self.requests += 1;
    }

    pub fn wait_until_done(&self) -> Result<()> {
        let deadline = Instant::now() + REQUEST_WITHIN;
        while self.word::<AtomicU32>(12).load(Ordering::SeqCst) != self.requests {
            ensure!(
                Instant::now() < deadline,
                "the server didn't carry out a request of the turned clock"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn word<T>(&self, offset: usize) -> &T {
        assert!(offset + size_of::<T>() <= self.page.len() && offset % align_of::<T>() == 0);
        // SAFETY: within the page and aligned, see above; atomics may be changed by the other
        // process at any time.
        unsafe { &*self.page.as_ptr().add(offset).cast::<T>() }
    }
}
