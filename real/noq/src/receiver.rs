//! The receiving side of a flow: the server, which acknowledges, and compares what it reads.

use bytes::BytesMut;
use noq_proto::{ConnectionError, Event, StreamEvent};

use crate::content::Download;
use crate::peer::{Outlet, Peer};
use crate::plan::{Flow, NEVER};
use crate::rows::Series;
use crate::run::Run;
use crate::sender::lost;

pub struct Receiver {
    peer: Peer,
    download: Download,
    size: Option<u64>,
    stop: i64,
    completion: i64,
    is_closed: bool,
    series: Series<u64>, // received bytes
}

pub struct ReceiverRecord {
    pub goodput_bytes: Vec<u64>,
    pub received: u64,
    pub completion: i64,
}

impl Receiver {
    pub fn new(flow: &Flow, run: &Run, peer: Peer) -> Self {
        Self {
            peer,
            download: Download::new(run.content.clone()),
            size: flow.size_bytes,
            stop: flow.stop,
            completion: NEVER,
            is_closed: false,
            series: Series::new(run.schedule),
        }
    }

    pub fn received(&self) -> u64 {
        self.download.received
    }

    /// Whether its peer has something to say.
    pub fn is_open(&self, now: i64) -> bool {
        !self.is_closed && self.received() > 0 && self.completion == NEVER && now < self.stop
    }

    pub fn next_timeout(&self) -> i64 {
        if self.is_closed { NEVER } else { self.peer.next_timeout() }
    }

    pub fn on_datagram(
        &mut self,
        now: i64,
        datagram: BytesMut,
        outlet: &mut impl Outlet,
    ) -> Result<(), String> {
        if self.is_closed { Ok(()) } else { self.peer.on_datagram(now, datagram, outlet) }
    }

    pub fn drive(&mut self, now: i64, outlet: &mut impl Outlet) -> Result<(), String> {
        if self.is_closed {
            return Ok(());
        }
        self.peer.on_timeout(now);
        while let Some(event) = self.peer.next_event() {
            let Some(connection) = self.peer.connection() else { break };
            match event {
                Event::Stream(StreamEvent::Opened { .. }) => self.download.accept(connection)?,
                Event::Stream(StreamEvent::Readable { id }) => self.download.read(connection, id)?,
                Event::ConnectionLost { reason } => {
                    // The sender's time is over, or all is there; what says so may have been lost.
                    self.is_closed = now >= self.stop || is_without_error(&reason);
                    return if self.is_closed { Ok(()) } else { Err(lost(&reason)) };
                }
                _ => {}
            }
        }
        if self.completion == NEVER && self.size.is_some_and(|size| size == self.download.received) {
            self.completion = now;
        }
        self.peer.transmit(now, outlet)
    }

    /// The rows that are due before `end`.
    pub fn record(&mut self, end: i64) -> Result<(), String> {
        let received = self.download.received;
        self.series.advance(end, |_| Ok(received))
    }

    pub fn finish(self) -> ReceiverRecord {
        ReceiverRecord {
            goodput_bytes: self.series.take(),
            received: self.download.received,
            completion: self.completion,
        }
    }
}

fn is_without_error(reason: &ConnectionError) -> bool {
    matches!(reason, ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0)
}
